//! Saying that the kernel is ready, in the ways that are listened to. Nobody but the supervisor does.

use std::io::Write;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use sd_notify::NotifyState;

use crate::log;

/// Says it on standard error, on standard output (an autostarting client waits there) and to the service manager.
pub(crate) fn ready(socket: &Path) {
    log::line(&format!("ready {}", socket.display()));
    // A client that stopped waiting closed its pipe.
    let mut out = std::io::stdout().lock();
    let _unread = writeln!(out, "ready {}", socket.display()).and_then(|()| out.flush());
    tell(&[NotifyState::Ready, NotifyState::Status("serving")]);
}

/// Says that the kernel serves and can make no session. The service manager is told that it is there all the same: ended
/// and started again it could do no more.
pub(crate) fn unready(socket: &Path) {
    log::line(&format!("unready {}", socket.display()));
    let mut out = std::io::stdout().lock();
    let _unread = writeln!(out, "unready {}", socket.display()).and_then(|()| out.flush());
    tell(&[NotifyState::Ready, NotifyState::Status("serving, but no session can be made")]);
}

/// Tells the service manager that the kernel drains.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Tells the service manager that the kernel lives.
pub(crate) fn alive() {
    tell(&[NotifyState::Watchdog]);
}

/// How often the service manager wants to hear that, halved; `None` when it does not.
pub(crate) fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|period| period / 2).filter(|period| !period.is_zero())
}

/// Gives the service manager a copy of a descriptor to keep under a name; whether there is one to give it to.
pub(crate) fn keep(name: &str, fd: BorrowedFd<'_>) -> bool {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return false;
    }
    match sd_notify::notify_with_fds(&[NotifyState::FdStore, NotifyState::FdName(name)], &[fd]) {
        Ok(()) => true,
        Err(e) => {
            log::line(&format!("the service manager does not keep the listener: {e}"));
            false
        }
    }
}

/// The service manager drops what it keeps under a name.
pub(crate) fn forget(name: &str) {
    tell(&[NotifyState::FdStoreRemove, NotifyState::FdName(name)]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(e) = sd_notify::notify(states) {
        log::detail(&format!("cannot reach the service manager: {e}"));
    }
}
