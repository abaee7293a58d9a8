//! What a session's jail is on macOS: one profile around everything, and limits.

use std::ffi::CString;
use std::io;

use shoal_proto::supervisor_launcher::Domain;
use shoal_sys::fork::Namespaces;
use shoal_sys::rlimit::Limit;

use crate::failed::Failed;
use crate::host::Host;
pub use crate::order::{Order, Protected};
use crate::order::{limits, lower_all};
use crate::seatbelt::{self, Profile};

/// A jail that can be entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// None: macOS has no namespaces.
    pub namespaces: Namespaces,
    /// The profile; `None` when a place that has to be protected cannot be named in one.
    pub profile: Option<Profile>,
    /// Limits of its processes.
    pub limits: Vec<(Limit, u64)>,
    /// What the launcher confines itself to: nothing, the profile holds it already and profiles do not nest.
    pub domain: Domain,
}

/// Plans the jail of macOS; there is only one kind.
pub fn plan(order: &Order<'_>, _host: &Host) -> Plan {
    Plan {
        namespaces: Namespaces::default(),
        profile: seatbelt::profile(order),
        limits: limits(order),
        domain: Domain { files: None, ports: None, filter: false, exposed: true },
    }
}

impl Plan {
    /// Enters the jail: for the process that becomes the launcher right after.
    pub fn enter(&self) -> Result<(), Failed> {
        let failed = |step: &str, error| Failed { step: step.to_owned(), error, no_such_dir: false };
        lower_all(&self.limits, self.namespaces.user).map_err(|e| failed("lower a limit", e))?;
        let profile = self.profile.as_ref().ok_or_else(|| {
            failed("name the kernel's places in the sandbox", io::Error::from_raw_os_error(libc::EILSEQ))
        })?;
        let text = |text: &str| CString::new(text).map_err(|e| failed("write the sandbox profile", e.into()));
        let parameters = profile
            .parameters
            .iter()
            .map(|(name, value)| Ok((text(name)?, text(value)?)))
            .collect::<Result<Vec<_>, Failed>>()?;
        shoal_sys::seatbelt::apply(&text(&profile.text)?, &parameters).map_err(|e| failed("enter the sandbox", e))
    }
}
