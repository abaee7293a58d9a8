//! Birth of a session: the first message, the first worker, then the loop.

use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::Duration;

use shoal_chan::Received;
use shoal_proto::Text;
use shoal_proto::section::Section;
use shoal_proto::supervisor_launcher::{Birth, BirthFailed, ToLauncher, ToSupervisor};
use shoal_sys::signal::SignalFd;
use shoal_sys::{fd, memfd};

use crate::edge;
use crate::launcher::{Launcher, SupervisorEdge};
use crate::memory::MemoryEvents;
use crate::roles::Roles;

/// Fixed descriptors of a session's launcher.
const SUPERVISOR_FD: i32 = 3;
const WORKER_FD: i32 = 4;
const PTYD_FD: i32 = 5;
const MEMORY_FD: i32 = 6;
/// The supervisor sends the birth right after it made the jail.
const BIRTH_TIME: Duration = Duration::from_secs(10);
/// A compiled section: thirteen lists of paths at most.
const MAX_SECTION: usize = 8 * 1024 * 1024;

/// A step of the birth that failed.
struct Failed {
    step: String,
    error: io::Error,
}

/// Is born and serves until the session ends.
pub(crate) fn run(signals: SignalFd) -> io::Result<ExitCode> {
    let mut supervisor: SupervisorEdge = edge::open(fd::inherited(SUPERVISOR_FD)?)?;
    let worker_image = fd::inherited(WORKER_FD)?;
    let ptyd_image = fd::inherited(PTYD_FD)?;
    let received = supervisor.recv_deadline(BIRTH_TIME).map_err(|e| io::Error::other(e.to_string()))?;
    let Received { msg: ToLauncher::Birth(birth), fds } = received else {
        return Err(io::Error::other("the first message of the supervisor is not a birth"));
    };
    let memory = birth.memory_events.then(|| fd::inherited(MEMORY_FD).map(MemoryEvents::new)).transpose()?;
    let roles = Roles::new(worker_image, Some(ptyd_image), Vec::new(), Vec::new());
    match born(birth, fds, roles, signals) {
        Ok(mut launcher) => {
            launcher.supervisor = Some(supervisor);
            launcher.memory = memory;
            launcher.serve()?;
            Ok(ExitCode::SUCCESS)
        }
        Err(Failed { step, error }) => {
            let errno = error.raw_os_error().unwrap_or_default();
            let failed = BirthFailed { step: Text::cut(&step), errno };
            let told = supervisor.send(&ToSupervisor::BirthFailed(failed), &[]);
            told.map_err(|e| io::Error::other(e.to_string()))?;
            Err(io::Error::new(error.kind(), format!("{step}: {error}")))
        }
    }
}

fn born(birth: Birth, fds: Vec<OwnedFd>, roles: Roles, signals: SignalFd) -> Result<Launcher, Failed> {
    let at = |step: &'static str| move |error| Failed { step: step.to_owned(), error };
    edge::check_hello(&birth.hello)
        .map_err(|e| Failed { step: "greet the supervisor".to_owned(), error: io::Error::other(e.to_string()) })?;
    let mut fds = fds.into_iter();
    let (Some(section), Some(broker_end), Some(worker_end)) = (fds.next(), fds.next(), fds.next()) else {
        return Err(Failed {
            step: "take the descriptors of birth".to_owned(),
            error: io::ErrorKind::InvalidInput.into(),
        });
    };
    let bytes = memfd::read_sealed(&section, MAX_SECTION).map_err(at("read the section"))?;
    let section = Section::decode(&bytes)
        .map_err(|e| Failed { step: "decode the section".to_owned(), error: io::Error::other(e.to_string()) })?;
    // Before anything is started: every process of the session inherits it.
    #[cfg(target_os = "linux")]
    shoal_jail::confine::session(&birth.domain, &roles.images())
        .map_err(|failed| Failed { step: failed.step, error: failed.error })?;
    let mut launcher = Launcher::new(section, birth.limits, roles, signals);
    launcher.generation = birth.hello.generation;
    launcher.broker = Some(edge::open(broker_end).map_err(at("open the broker's edge"))?);
    launcher.start_worker(Some(worker_end)).map_err(at("start the worker"))?;
    launcher.greet_broker();
    Ok(launcher)
}
