//! Making the first process of a session on macOS.

use std::io;

use shoal_sys::fork::{Namespaces, fork};
use shoal_sys::spawn::Child;

/// Makes a process that runs `inside` and exits with what it returns. The parent must have one thread.
pub fn make(namespaces: Namespaces, inside: impl FnOnce() -> u8) -> io::Result<Child> {
    fork(namespaces, inside)
}
