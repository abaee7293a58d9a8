//! What this host offers, found by doing: a canary in a throw-away jail tries what a session must not be able to do.
//!
//! No attack of the canary does harm when it succeeds: it opens and closes, asks, or sets what is set already.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::Pid;
use shoal_proto::List;
use shoal_proto::section::{Network, Section};
use shoal_proto::supervisor_broker::Limits;
use shoal_sys::poll::{Ready, wait};
use shoal_sys::rlimit::Limit;
use shoal_sys::spawn::{Command, Program, Stage};

pub use crate::host::{Host, Target};
use crate::plan::{Order, Plan, Protected, plan};
use crate::{confine, holes, make};

/// The whole trial takes some milliseconds.
const DEADLINE: Duration = Duration::from_secs(5);

/// Tries the strongest jail first, and a weaker one when it cannot be made. The caller must have one thread; it is the
/// canary's victim.
pub fn probe(target: &Target<'_>) -> Host {
    let offered = Host {
        landlock_abi: shoal_sys::landlock::abi(),
        seccomp: shoal_sys::seccomp::is_available(),
        ..Host::default()
    };
    let strong = Host { namespaces: true, ..offered.clone() };
    let why = match trial(target, &strong) {
        Ok(claims) => return Host { claims, ..strong },
        Err(why) => why,
    };
    let weak = Host { missing: why, ..offered };
    match trial(target, &weak) {
        Ok(claims) => Host { claims, ..weak },
        Err(and) => Host { missing: format!("{}; {and}", weak.missing), landlock_abi: 0, seccomp: false, ..weak },
    }
}

fn trial(target: &Target<'_>, host: &Host) -> Result<u16, String> {
    let all = || List::new(vec![shoal_proto::Text::cut("/**")]).unwrap_or_default();
    let section =
        Section { fs_read: all(), fs_write: all(), fs_delete: all(), network: Network::None, ..Section::default() };
    let limits = Limits::default();
    let order = Order { section: &section, cwd: Path::new("/"), limits: &limits, lane: None, kernel: target.kernel };
    let plan = plan(&order, host);
    let services = services(target.kernel);
    let victim = shoal_sys::process::pid();
    let (answer, theirs) = shoal_sys::fd::pipe().map_err(|e| e.to_string())?;
    let made = make::make(plan.namespaces, || canary(&plan, target, &services, victim, theirs.as_fd()));
    let child = made.map_err(|e| format!("namespaces cannot be made: {e}; {}", remedy(&e)))?;
    drop(theirs);
    let handle = child.pidfd;
    let ended = wait(handle.as_fd(), Ready::READ, Some(DEADLINE)).map_err(|e| e.to_string())?;
    if !ended {
        handle.signal(libc::SIGKILL).map_err(|e| e.to_string())?;
        wait(handle.as_fd(), Ready::READ, Some(DEADLINE)).map_err(|e| e.to_string())?;
    }
    let exit = handle.try_reap().map_err(|e| e.to_string())?;
    let mut text = String::new();
    std::fs::File::from(answer).take(1024).read_to_string(&mut text).map_err(|e| e.to_string())?;
    match text.strip_prefix("claims ").and_then(|claims| claims.parse().ok()) {
        Some(claims) => Ok(claims),
        None if text.is_empty() => Err(format!("the trial jail ended with {exit:?}")),
        None => Err(text),
    }
}

/// What a person can do about namespaces that are refused.
fn remedy(error: &std::io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "unprivileged user namespaces are denied here: allow them for shoal-kernel (an AppArmor profile with \
             `userns,`, or the container's seccomp profile), or start the kernel by the service manager"
        }
        Some(libc::ENOSPC | libc::EUSERS) => "user namespaces are used up: raise user.max_user_namespaces",
        _ => "see the kernel's log",
    }
}

fn canary(
    plan: &Plan,
    target: &Target<'_>,
    services: &[PathBuf],
    victim: i32,
    answer: std::os::fd::BorrowedFd<'_>,
) -> u8 {
    let confined = plan.enter().and_then(|()| confine::session(&plan.domain, &[]));
    let text = match confined {
        Ok(()) => format!("claims {}", claims(plan, target, services, victim)),
        Err(failed) => failed.to_string(),
    };
    let Ok(copy) = answer.try_clone_to_owned() else { return 1 };
    u8::from(std::fs::File::from(copy).write_all(text.as_bytes()).is_err())
}

/// One bit per attack that failed.
fn claims(plan: &Plan, target: &Target<'_>, services: &[PathBuf], victim: i32) -> u16 {
    let holds: [bool; 12] = [
        !can_read_memory(victim),
        !matches!(shoal_sys::process::kill(victim, 0), Ok(true)),
        !can_renice(victim),
        std::fs::File::open(target.state.join("lock")).is_err(),
        !has_removable_ancestor(target.state),
        rustix::fs::chmod(target.state, rustix::fs::Mode::RWXU).is_err(),
        !can_connect(target.socket),
        !services.iter().any(|service| can_connect(service)),
        plan.namespaces.pid && shoal_sys::process::pid() == 1,
        is_process_count_bounded(plan),
        // A bound for the whole session needs a delegated memory controller.
        false,
        !has_network(plan),
    ];
    holds.iter().enumerate().filter(|(_, holds)| **holds).fold(0, |claims, (bit, _)| claims | 1 << bit)
}

fn can_read_memory(pid: i32) -> bool {
    ["mem", "environ", "maps"].iter().any(|name| {
        let opened = std::fs::File::open(format!("/proc/{pid}/{name}"));
        // Opening alone is not reading: the check is at the first byte for some of them.
        opened.is_ok_and(|mut file| *name == "mem" || matches!(file.read(&mut [0; 1]), Ok(1)))
    })
}

/// Sets the victim's niceness to our own, which it inherited to us.
fn can_renice(pid: i32) -> bool {
    let Some(pid) = Pid::from_raw(pid) else { return false };
    let Ok(own) = rustix::process::getpriority_process(None) else { return false };
    rustix::process::setpriority_process(Some(pid), own).is_ok()
}

/// No directory above the state directory is empty, so nothing is removed; a name that could be is told apart from one
/// that is pinned by the error.
fn has_removable_ancestor(state: &Path) -> bool {
    let above = state.ancestors().skip(1).filter(|dir| *dir != Path::new("/"));
    above.into_iter().any(|dir| {
        let removed = std::fs::remove_dir(dir);
        matches!(removed.map_err(|e| e.raw_os_error()), Ok(()) | Err(Some(libc::ENOTEMPTY | libc::EEXIST)))
    })
}

fn can_connect(path: &Path) -> bool {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let connected = SocketAddrUnix::new(path).and_then(|address| {
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::connect(&socket, &address)
    });
    // A full backlog is a way in all the same.
    matches!(connected, Ok(()) | Err(rustix::io::Errno::AGAIN))
}

/// Lowers the limit to the one process that is here and tries to start another.
fn is_process_count_bounded(plan: &Plan) -> bool {
    if !plan.namespaces.user || shoal_sys::rlimit::lower(Limit::Processes, 1).is_err() {
        return false;
    }
    let program = Program::Path(c"/bin/true".to_owned());
    match Command::new(program, vec![c"true".to_owned()]).spawn() {
        Err(error) => error.stage == Stage::Clone && error.errno == libc::EAGAIN,
        Ok(_child) => false,
    }
}

/// Whether anything but a loopback is there, or, without a namespace, a TCP connection is more than refused.
fn has_network(plan: &Plan) -> bool {
    if plan.namespaces.network {
        let devices = std::fs::read_to_string("/proc/net/dev").unwrap_or_default();
        let other = |line: &str| line.split_once(':').is_some_and(|(name, _)| name.trim() != "lo");
        return devices.is_empty() || devices.lines().any(other);
    }
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 9));
    let connected = std::net::TcpStream::connect_timeout(&address, Duration::from_millis(100));
    !matches!(connected, Err(e) if e.raw_os_error() == Some(libc::EACCES))
}

/// Sockets of this host's services that a session could act through.
fn services(kernel: &Protected) -> Vec<PathBuf> {
    let mut found = holes::files(kernel.home.as_deref(), &[]);
    let runtime = kernel.runtime.iter().cloned().chain([PathBuf::from(format!("/run/user/{}", kernel.uid))]);
    for dir in runtime {
        found.extend(["bus", "systemd/private", "docker.sock", "podman/podman.sock"].map(|name| dir.join(name)));
    }
    found.push(PathBuf::from(format!("/tmp/tmux-{}/default", kernel.uid)));
    found.retain(|path| path.exists());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_what_they_are_made_of() {
        let host = |seccomp, namespaces, landlock_abi| Host { seccomp, namespaces, landlock_abi, ..Host::default() };
        assert_eq!(host(true, true, 1).level(), "L3");
        assert_eq!(host(true, true, 0).level(), "L1");
        assert_eq!(host(true, false, 7).level(), "L2");
        assert_eq!(host(true, false, 5).level(), "L1");
        assert_eq!(host(false, true, 7).level(), "L0");
    }
}
