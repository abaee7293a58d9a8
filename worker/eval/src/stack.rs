//! Native stacks large enough for every program.
//!
//! Direct calls do not use the native stack. What does is a builtin that calls a closure (`map`, `each`, `retry`, ...): one
//! nested call over such a route takes at most [`CALL_STACK`] bytes, also in debug builds, and nested calls are limited to
//! 10,000. The stack is reserved address space; only pages that are touched take memory.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Native stack one nested call through a builtin may take, in debug builds too.
pub const CALL_STACK: usize = 96 * 1024;

/// Reserved for the stack of an evaluating thread: 10,000 nested calls, and room for walks over deep values and sources.
pub const EVALUATOR_STACK: usize = 1 << 30;

/// Nested calls through builtins after which a thread is not used again: the pages of its stack stay with it.
pub const DEEP: usize = 16;
/// Threads that wait for work. Requests of a session rarely overlap, and a waiting thread keeps its touched pages.
const WAITING: usize = 4;

/// Starts a thread for an evaluator. Fails if the system has no thread left.
pub fn spawn_evaluator<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).stack_size(EVALUATOR_STACK).spawn(body)
}

/// Runs `body` on a stack large enough for every program and gives its value. Fails if no thread can be started; a panic
/// of `body` goes on in the caller.
pub fn run_on_big_stack<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    match spawn_evaluator("evaluator", body)?.join() {
        Ok(value) => Ok(value),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// What work left of the stack it was done on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Used {
    /// Little: the thread is good for more.
    Shallow,
    /// Many pages that stay touched: the thread had better end.
    Deep,
}

type Work = Box<dyn FnOnce() -> Used + Send>;

/// Evaluating threads that are used again: making one with its stack costs more than a small request. Cloning shares them.
#[derive(Clone, Default)]
pub struct Threads(Arc<Mutex<Vec<Sender<Work>>>>);

impl Threads {
    /// Runs `body` on a waiting thread, or on a new one. Fails if one is needed and the system has no thread left.
    pub fn run(&self, body: impl FnOnce() -> Used + Send + 'static) -> io::Result<()> {
        let mut work: Work = Box::new(body);
        // Bound here, so that the list is not held while work is handed over.
        while let Some(waiting) = { self.waiting().pop() } {
            match waiting.send(work) {
                Ok(()) => return Ok(()),
                Err(back) => work = back.0,
            }
        }
        let threads = self.clone();
        spawn_evaluator("evaluator", move || threads.serve(work)).map(drop)
    }

    /// Does work until enough others wait for more, or until the stack was used so deep that it is better given back.
    fn serve(&self, mut work: Work) {
        let (sender, receiver) = channel();
        loop {
            if work() == Used::Deep || !self.wait_with(&sender) {
                return;
            }
            match receiver.recv() {
                Ok(more) => work = more,
                Err(_) => return,
            }
        }
    }

    fn wait_with(&self, sender: &Sender<Work>) -> bool {
        let mut waiting = self.waiting();
        let is_wanted = waiting.len() < WAITING;
        if is_wanted {
            waiting.push(sender.clone());
        }
        is_wanted
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Sender<Work>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread::ThreadId;

    use super::*;

    fn thread_of(threads: &Threads, used: Used) -> ThreadId {
        let (sender, receiver) = channel();
        let body = move || {
            sender.send(std::thread::current().id()).expect("the test waits");
            used
        };
        threads.run(body).expect("a thread");
        receiver.recv().expect("the body ran")
    }

    /// Until the thread of the last work waits again.
    fn settle(threads: &Threads) {
        while threads.waiting().is_empty() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_thread_is_used_again_unless_its_stack_was_used_deep() {
        let threads = Threads::default();
        let first = thread_of(&threads, Used::Shallow);
        settle(&threads);
        assert_eq!(thread_of(&threads, Used::Deep), first);
        assert_ne!(thread_of(&threads, Used::Shallow), first);
    }

    #[test]
    fn a_panic_costs_its_own_thread_only() {
        let threads = Threads::default();
        threads.run(|| std::panic::resume_unwind(Box::new("on purpose"))).expect("a thread");
        thread_of(&threads, Used::Shallow);
        settle(&threads);
    }
}
