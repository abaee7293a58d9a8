//! Stack for walks over deep trees. A tree is at most [`crate::MAX_NESTING`] levels deep, but unoptimised frames of a
//! level add up to more than a small thread's stack.

/// Stack that one level may use before its next check; measured in unoptimised builds with a wide margin.
const RED_ZONE: usize = 256 * 1024;
/// Stack that is added when it runs low.
const STEP: usize = 2 * 1024 * 1024;

/// Runs one level of a recursive walk, on a new piece of stack if the present one runs low.
pub fn with_stack<T>(walk: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE, STEP, walk)
}
