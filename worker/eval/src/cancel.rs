//! Cancellation: a token that is set once and seen by everything below it.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Why a token was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReason {
    /// Somebody asked.
    Cancelled,
    /// The host's deadline for the run.
    Deadline,
}

/// A wait that ended because the token was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

/// A token that is set at most once. Children are set with their parent; setting a child leaves the parent alone. Cloning
/// shares the token.
#[derive(Clone)]
pub struct CancelToken(Arc<State>);

type Waker = Box<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct State {
    reason: AtomicU8,
    links: Mutex<Links>,
    /// Kept, because the parent's own parent reaches this token only through it.
    _parent: Option<Arc<State>>,
}

#[derive(Default)]
struct Links {
    children: Vec<Weak<State>>,
    wakers: Vec<(u64, Arc<Waker>)>,
    next: u64,
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}

impl CancelToken {
    /// A token that is not set.
    pub fn new() -> Self {
        Self(Arc::default())
    }

    /// A token that is set with this one, or on its own.
    pub fn child(&self) -> Self {
        let child = Self(Arc::new(State { _parent: Some(self.0.clone()), ..State::default() }));
        let mut links = self.0.links();
        // Checked under the lock: a concurrent `cancel` either sees the child in the list or has set the reason already.
        match self.reason() {
            Some(reason) => child.0.reason.store(encode(reason), Ordering::Release),
            None => {
                links.children.retain(|c| c.strong_count() > 0);
                links.children.push(Arc::downgrade(&child.0));
            }
        }
        drop(links);
        child
    }

    /// Sets it. The first reason stays.
    pub fn cancel(&self, reason: CancelReason) {
        self.0.set(reason);
    }

    /// Whether it is set.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.reason.load(Ordering::Relaxed) != 0
    }

    /// Why it was set, if it was.
    pub fn reason(&self) -> Option<CancelReason> {
        match self.0.reason.load(Ordering::Acquire) {
            0 => None,
            1 => Some(CancelReason::Cancelled),
            _ => Some(CancelReason::Deadline),
        }
    }

    /// Calls `wake` once when the token is set, at once if it already is, unless the registration was dropped before. It
    /// runs on the thread that sets the token and must not block.
    #[must_use]
    pub fn on_cancel(&self, wake: impl Fn() + Send + Sync + 'static) -> Registration {
        let mut links = self.0.links();
        if self.is_set() {
            drop(links);
            wake();
            return Registration { state: Weak::new(), id: 0 };
        }
        let id = links.next;
        links.next += 1;
        links.wakers.push((id, Arc::new(Box::new(wake))));
        Registration { state: Arc::downgrade(&self.0), id }
    }
}

impl State {
    fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, reason: CancelReason) {
        let (children, wakers) = {
            let mut links = self.links();
            if self.reason.load(Ordering::Relaxed) != 0 {
                return;
            }
            self.reason.store(encode(reason), Ordering::Release);
            (std::mem::take(&mut links.children), std::mem::take(&mut links.wakers))
        };
        wakers.iter().for_each(|(_, wake)| wake());
        children.iter().filter_map(Weak::upgrade).for_each(|child| child.set(reason));
    }
}

fn encode(reason: CancelReason) -> u8 {
    match reason {
        CancelReason::Cancelled => 1,
        CancelReason::Deadline => 2,
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CancelToken({:?})", self.reason())
    }
}

/// Keeps a waker of [`CancelToken::on_cancel`] registered; dropping it takes the waker out.
pub struct Registration {
    state: Weak<State>,
    id: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(state) = self.state.upgrade() {
            state.links().wakers.retain(|(id, _)| *id != self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn children_follow_their_parent_and_not_the_reverse() {
        let parent = CancelToken::new();
        let (first, second) = (parent.child(), parent.child().child());
        first.cancel(CancelReason::Cancelled);
        assert!(first.is_set() && !parent.is_set());
        parent.cancel(CancelReason::Deadline);
        assert_eq!(second.reason(), Some(CancelReason::Deadline));
        assert_eq!(first.reason(), Some(CancelReason::Cancelled));
        assert_eq!(parent.child().reason(), Some(CancelReason::Deadline));
    }

    #[test]
    fn wakers_run_once_unless_dropped() {
        let (token, count) = (CancelToken::new(), Arc::new(AtomicUsize::new(0)));
        let bump = |by: usize| {
            let count = count.clone();
            move || {
                count.fetch_add(by, Ordering::Relaxed);
            }
        };
        let _kept = token.on_cancel(bump(1));
        drop(token.on_cancel(bump(10)));
        token.cancel(CancelReason::Cancelled);
        token.cancel(CancelReason::Cancelled);
        let _late = token.on_cancel(bump(100));
        assert_eq!(count.load(Ordering::Relaxed), 101);
    }
}
