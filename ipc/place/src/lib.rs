//! Where a kernel's socket, state and configuration are: one order for the kernel and for everything that looks for it.
//!
//! The search is pure but for [`Places::look`], so that it is tested without directories. [`Vars`] is the environment
//! it reads, taken once, and [`is_session_var`] says which of its variables a session begins with.
#![forbid(unsafe_code)]
// The one look at the file system that the search needs is here: who owns a directory.
#![allow(clippy::disallowed_methods)]

mod name;
mod places;
mod vars;

pub use name::{NAME_RULE, is_session_name};
pub use places::{Directory, PlaceError, Places, fits, home};
pub use vars::{Vars, is_session_var};
