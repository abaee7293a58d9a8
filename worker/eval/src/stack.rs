//! Native stacks large enough for every program.
//!
//! Direct calls do not use the native stack. What does is a builtin that calls a closure (`map`, `each`, `retry`, ...): one
//! nested call over such a route takes at most [`CALL_STACK`] bytes, also in debug builds, and nested calls are limited to
//! 10,000. The stack is reserved address space; only pages that are touched take memory.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Native stack one nested call through a builtin may take, in debug builds too.
pub const CALL_STACK: usize = 96 * 1024;

/// Reserved for the stack of an evaluating thread: 10,000 nested calls, and room for walks over deep values and sources.
pub const EVALUATOR_STACK: usize = 1 << 30;

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
