//! What this Mac offers, found by doing: a process enters a session's profile and exits.

use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Duration;

use shoal_proto::section::Section;
use shoal_proto::supervisor_broker::Limits;
use shoal_sys::fork::Namespaces;
use shoal_sys::poll::{Ready, wait};
use shoal_sys::process::Exit;

pub use crate::host::{Host, Target};
use crate::make;
use crate::plan::{Order, plan};

/// The whole trial takes some milliseconds.
const DEADLINE: Duration = Duration::from_secs(5);
/// What is never there on macOS.
const ABSENT: &str =
    "macOS has no namespaces, no Landlock and no system call filters: no claim of docs/security.md is held";

/// Tries a profile. The caller must have one thread. No claim is ever reported: none was tried on a Mac.
pub fn probe(target: &Target<'_>) -> Host {
    let missing = match trial(target) {
        Ok(Some(Exit::Code(0))) => format!("{ABSENT}; sessions run in a Seatbelt profile"),
        Ok(Some(_)) => format!(
            "{ABSENT}; the Seatbelt profile was refused, too: inside another sandbox none can be entered, start the \
             kernel by launchd (shoal setup service)"
        ),
        Ok(None) => format!("{ABSENT}; the trial of the Seatbelt profile did not end in time"),
        Err(error) => format!("{ABSENT}; the trial of the Seatbelt profile failed: {error}"),
    };
    Host { missing, ..Host::default() }
}

fn trial(target: &Target<'_>) -> io::Result<Option<Exit>> {
    let section = Section::default();
    let limits = Limits::default();
    let order = Order { section: &section, cwd: Path::new("/"), limits: &limits, lane: None, kernel: target.kernel };
    let plan = plan(&order, &Host::default());
    let child = make::make(Namespaces::default(), || u8::from(plan.enter().is_err()))?;
    if !wait(child.pidfd.as_fd(), Ready::READ, Some(DEADLINE))? {
        child.pidfd.signal(libc::SIGKILL)?;
        wait(child.pidfd.as_fd(), Ready::READ, Some(DEADLINE))?;
        child.pidfd.try_reap()?;
        return Ok(None);
    }
    child.pidfd.try_reap()
}
