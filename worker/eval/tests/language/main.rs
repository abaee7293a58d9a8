//! The language as programs see it.

#[path = "../support/mod.rs"]
mod support;

mod cases;
mod verdict;
