//! The language as programs see it.

#[path = "../support/mod.rs"]
mod support;

mod acceptance;
mod benches;
mod cases;
mod channels;
mod effects;
mod hints;
mod limits;
mod reef;
mod session;
mod trees;
mod verdict;
mod ways;
