//! A listener that outlives its kernel: one that the kernel bound itself lies with the service manager too, in the descriptor
//! store of the unit. The next kernel of the unit takes it back, with the clients that came meanwhile in its backlog.
//!
//! A kernel that is ended by a signal cannot know whether it is stopped or restarted, so the socket stays where it is: a
//! service manager that stops a unit drops its store, and what is left is a dead socket, which the next kernel replaces.
//! Only an end that a client asked for is final. A socket unit's listener is the service manager's own and not stored.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use crate::listener::Listener;
use crate::{log, notify};

/// What the store calls the listener.
pub(crate) const NAME: &str = "shoal-listener";

/// The listener of `path` among what the last kernel left with the service manager.
pub(crate) fn take_back(kept: Vec<OwnedFd>, path: &Path) -> Option<Listener> {
    kept.into_iter().find_map(|fd| match Listener::reclaim(fd, path) {
        Ok(listener) => {
            log::detail(&format!("taken back from the service manager: {}", path.display()));
            Some(listener)
        }
        Err(e) => {
            log::line(&format!("a stored listener is of no use: {e}"));
            None
        }
    })
}

/// Leaves the listener with the service manager, and nothing else under its name.
pub(crate) fn keep(listener: &mut Listener) {
    if listener.is_made_here() {
        notify::forget(NAME);
        listener.kept = notify::keep(NAME, listener.fd.as_fd());
    }
}

/// This kernel was the last one: nothing stays.
pub(crate) fn drop_kept(listener: &mut Listener) {
    if std::mem::take(&mut listener.kept) {
        notify::forget(NAME);
    }
}
