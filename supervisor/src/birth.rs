//! Making a session's launcher: edges, a process in namespaces of its own, the jail around it, the launcher in it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use shoal_jail::make::make;
use shoal_jail::plan::{Order, Protected};
use shoal_jail::probe::Host;
use shoal_proto::hello::BUILD;
use shoal_proto::section::Section;
use shoal_proto::supervisor_broker::{CreateSession, SessionId};
use shoal_proto::supervisor_launcher::{Birth, ToLauncher};
use shoal_proto::{EDGE_VERSION, Hello, List, Text};
use shoal_sys::pidfd::Pidfd;

use crate::edges::{self, LauncherChan};
use crate::groups::{Bounds, Group, Groups};
use crate::means::Means;
use crate::roles::{self, Roles, word};

/// What to do where no first process can be made.
const NO_NAMESPACES: &str = "start the kernel by the service manager: shoal setup service";

/// Why there is no session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) step: String,
    pub(crate) errno: i32,
    pub(crate) remedy: &'static str,
    pub(crate) no_such_dir: bool,
}

impl Failed {
    pub(crate) fn at(step: impl Into<String>, errno: i32) -> Self {
        Self { step: step.into(), errno, remedy: "", no_such_dir: false }
    }

    fn io(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::at(step, error.raw_os_error().unwrap_or(0))
    }
}

/// A launcher that was just made.
#[derive(Debug)]
pub(crate) struct Newborn {
    pub(crate) pid: i32,
    pub(crate) launcher: Pidfd,
    pub(crate) edge: LauncherChan,
    pub(crate) report: OwnedFd,
    /// The broker's ends of broker-launcher and broker-worker.
    pub(crate) ends: Vec<OwnedFd>,
    pub(crate) group: Option<Group>,
}

/// Fresh ends of the edges between the broker and the roles of a session.
#[derive(Debug)]
pub(crate) struct Ends {
    /// The broker's: launcher, worker and, if asked for, ptyd.
    pub(crate) broker: Vec<OwnedFd>,
    /// The session's, in the same order.
    pub(crate) session: Vec<OwnedFd>,
}

impl Ends {
    pub(crate) fn make(edges: &[edges::Edge]) -> io::Result<Self> {
        let pairs = edges.iter().map(|edge| edges::ends(*edge)).collect::<io::Result<Vec<_>>>()?;
        let (broker, session) = pairs.into_iter().unzip();
        Ok(Self { broker, session })
    }
}

/// Our hello on an edge of this generation.
pub(crate) fn hello(generation: u32) -> Hello {
    Hello { version: EDGE_VERSION, build: Text::cut(BUILD), generation }
}

/// What every session is made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Makings<'a> {
    pub(crate) means: Means,
    pub(crate) roles: &'a Roles,
    pub(crate) kernel: &'a Protected,
    pub(crate) host: &'a Host,
    /// Where sessions get control groups.
    pub(crate) groups: Option<&'a Groups>,
    /// Where what a role says goes.
    pub(crate) stderr: BorrowedFd<'a>,
}

/// Makes the launcher of a session and sends it its birth. What fails inside the new process before the launcher runs
/// comes through `report`; everything later comes over the edge.
pub(crate) fn launch(
    makings: &Makings<'_>,
    section: &Section,
    order: &CreateSession,
    id: SessionId,
) -> Result<Newborn, Failed> {
    let cwd = resolve(Path::new(order.cwd.as_str()))?;
    let lane = order.lane.as_ref();
    let jail = Order { section, cwd: &cwd, limits: &order.limits, lane, kernel: makings.kernel };
    let plan = (makings.means.plan)(&jail, makings.host);
    let section = section.encode().map_err(|e| Failed::at(format!("encode the section: {e}"), 0))?;
    let section =
        shoal_sys::memfd::sealed("shoal-section", &section).map_err(Failed::io("make the section's memfd"))?;
    let ends = Ends::make(&[edges::BROKER_LAUNCHER, edges::BROKER_WORKER]).map_err(Failed::io("make the edges"))?;
    let (upper, lower) = edges::ends(edges::SUPERVISOR_LAUNCHER).map_err(Failed::io("make the edges"))?;
    let (report, their_report) = shoal_sys::fd::pipe().map_err(Failed::io("make the edges"))?;
    let null = shoal_sys::fd::null().map_err(Failed::io("open /dev/null"))?;
    let bounds = Bounds::of(jail.section, &order.limits);
    let group = makings.groups.map(|groups| groups.make(id, bounds)).transpose();
    let group = group.map_err(Failed::io("make the session's control group"))?;
    let memory = group.as_ref().and_then(Group::memory_events);
    let words = vec![word(&format!("shoal-launcher: {id}"))];
    let roles = makings.roles;
    let mut fds = vec![lower.as_fd(), roles.worker.as_fd(), roles.ptyd.as_fd()];
    fds.extend(memory.as_ref().map(AsFd::as_fd));
    let command = roles::command(&roles.launcher, words, &null, makings.stderr, &fds).setsid().die_with_parent();
    let child = make(plan.namespaces, || {
        match (makings.means.enter)(&plan) {
            Ok(()) => {
                let error = command.exec();
                tell_failure(&their_report, error.stage.name(), error.errno, false);
            }
            Err(failed) => {
                let errno = failed.error.raw_os_error().unwrap_or(0);
                tell_failure(&their_report, &failed.step, errno, failed.no_such_dir);
            }
        }
        1
    })
    .map_err(|e| Failed { remedy: NO_NAMESPACES, ..Failed::io("make the session's first process")(e) })?;
    if let Some(Err(error)) = group.as_ref().map(|group| group.take_in(child.pid)) {
        // It has started nothing yet; the reaper takes what is left of it.
        child.pidfd.signal(libc::SIGKILL).map_err(Failed::io("end the session's first process"))?;
        return Err(Failed::io("enter the session's control group")(error));
    }
    drop((their_report, lower));

    let mut edge = LauncherChan::from_fd(upper).map_err(Failed::io("open the launcher's edge"))?;
    edge.set_nonblocking(true);
    let birth = Birth {
        hello: hello(1),
        limits: order.limits.clone(),
        roots: List::default(),
        domain: plan.domain.clone(),
        memory_events: memory.is_some(),
    };
    let their_ends: Vec<BorrowedFd<'_>> = [&section].into_iter().chain(&ends.session).map(AsFd::as_fd).collect();
    edge.send(&ToLauncher::Birth(birth), &their_ends).map_err(|e| Failed::at(format!("send the birth: {e}"), 0))?;
    Ok(Newborn { pid: child.pid, launcher: child.pidfd, edge, report, ends: ends.broker, group })
}

/// The directory a session starts in, without symbolic links: the view is made of real paths.
fn resolve(cwd: &Path) -> Result<PathBuf, Failed> {
    let absolute = Some(cwd).filter(|cwd| cwd.is_absolute());
    let found = absolute.and_then(|cwd| std::fs::canonicalize(cwd).ok()).filter(|cwd| cwd.is_dir());
    found.ok_or_else(|| Failed { no_such_dir: true, ..Failed::at("enter the session's directory", libc::ENOENT) })
}

/// Written by the new process, which has nothing else to say it with: error number, whether the directory is missing,
/// then the step.
fn tell_failure(report: &OwnedFd, step: &str, errno: i32, no_such_dir: bool) {
    let text = [&errno.to_le_bytes()[..], &[u8::from(no_such_dir)], step.as_bytes()].concat();
    // Nobody can be told that telling failed; the exit code still says that the set-up did.
    let _lost = rustix::io::write(report, &text);
}

/// What the new process said before it ended.
pub(crate) fn read_failure(report: &OwnedFd) -> Option<Failed> {
    let mut buffer = [0; 4096];
    let len = rustix::io::read(report, &mut buffer).ok()?;
    let (errno, rest) = buffer.get(..len)?.split_first_chunk::<4>()?;
    let (no_such_dir, step) = rest.split_first()?;
    let failed = Failed::at(String::from_utf8_lossy(step), i32::from_le_bytes(*errno));
    Some(Failed { no_such_dir: *no_such_dir != 0, ..failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_crosses_the_pipe() {
        let (report, theirs) = shoal_sys::fd::pipe().unwrap();
        tell_failure(&theirs, "hide the state directory", libc::EPERM, false);
        drop(theirs);
        assert_eq!(read_failure(&report), Some(Failed::at("hide the state directory", libc::EPERM)));
        assert_eq!(read_failure(&report), None);
    }

    #[test]
    fn a_directory_must_be_there() {
        assert_eq!(resolve(Path::new("/usr/..")), Ok("/".into()));
        for bad in ["", "relative", "/nowhere", "/etc/passwd"] {
            assert!(resolve(Path::new(bad)).unwrap_err().no_such_dir, "{bad}");
        }
    }
}
