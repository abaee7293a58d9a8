//! Live things inside values. The evaluator implements these traits; this crate only names, compares and shows them.
//!
//! A handle is compared by identity (the address of its allocation), so a clone equals its original. To get the concrete
//! type back use `downcast` of the trait object: `(&*closure as &dyn Any).downcast_ref::<Lambda>()`, or
//! [`concrete`].

use std::any::Any;
use std::sync::Arc;

use crate::Str;

/// A function, lambda, builtin function or namespace member (type `closure`).
pub trait Callable: Any + Send + Sync {
    /// Inline text: `fn name(p, ...rest)`, `closure(p)`, or `fn math.sqrt(x)` for a builtin.
    fn repr(&self) -> String;

    /// Full name of a builtin function. Builtins are equal when their names are; others by identity.
    fn builtin_name(&self) -> Option<&str> {
        None
    }
}

/// A single-use, possibly endless source (type `stream`).
pub trait StreamSource: Any + Send + Sync {
    /// What the stream is made of, shown as `stream<label>`.
    fn label(&self) -> Str;
}

/// A running or finished background computation (type `task`).
pub trait TaskHandle: Any + Send + Sync {
    /// Number of the task in its session, from 1.
    fn id(&self) -> u64;

    /// Whether it has ended in any way.
    fn is_done(&self) -> bool;
}

/// A parsed, partly applied call (type `command`).
pub trait Alias: Any + Send + Sync {
    /// First word of the call, shown as `command(head)`.
    fn head(&self) -> Str;
}

/// The concrete type behind a shared handle, or null if it is another one.
pub fn concrete<T: Any>(handle: &dyn Any) -> Option<&T> {
    handle.downcast_ref()
}

/// Whether two handles are the same allocation.
pub fn same<T: ?Sized>(a: &Arc<T>, b: &Arc<T>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b))
}
