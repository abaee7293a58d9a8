//! State that threads of a session wait for.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::cancel::CancelToken;
use crate::host::Clock;
use crate::unwind::{Eval, Stop};

/// A state whose changes wake those who wait for it. Cloning shares it.
pub(crate) struct Watched<T>(Arc<(Mutex<T>, Condvar)>);

impl<T> Clone for Watched<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Watched<T> {
    pub(crate) fn new(state: T) -> Self {
        Self(Arc::new((Mutex::new(state), Condvar::new())))
    }

    /// The state, to look at.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes those who wait.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.lock());
        self.0.1.notify_all();
        result
    }
}

impl<T: Send + 'static> Watched<T> {
    /// Waits until `ready` finds something in the state. Nothing if the clock reaches `due` before; ends with the run
    /// whose token this is.
    pub(crate) fn wait<R>(
        &self,
        clock: &dyn Clock,
        cancel: &CancelToken,
        due: Option<u64>,
        mut ready: impl FnMut(&mut T) -> Option<R>,
    ) -> Eval<Option<R>> {
        if let Some(found) = ready(&mut self.lock()) {
            return Ok(Some(found));
        }
        let waiter = Arc::downgrade(&self.0);
        let _awake = cancel.on_cancel(move || {
            if let Some(shared) = waiter.upgrade() {
                // The lock orders this with a waiter that has looked at the token and is about to sleep.
                drop(shared.0.lock().unwrap_or_else(PoisonError::into_inner));
                shared.1.notify_all();
            }
        });
        let mut state = self.lock();
        loop {
            if let Some(found) = ready(&mut state) {
                return Ok(Some(found));
            }
            if let Some(reason) = cancel.reason() {
                return Err(Stop::Cancelled(reason).into());
            }
            let woken = &self.0.1;
            state = match due {
                None => woken.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(due) => {
                    let rest = due.saturating_sub(clock.monotonic_ns());
                    if rest == 0 {
                        return Ok(None);
                    }
                    woken.wait_timeout(state, Duration::from_nanos(rest)).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}
