//! The attack list against a running kernel, from every place of a session an attack can come from.
//!
//! What must come of each is in `expected.toml`; a cell that differs fails. As root, everything runs as a fresh ordinary
//! user.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "tests start processes and make files")]
#![cfg(target_os = "linux")]

mod afterlife;
mod expected;
mod field;
mod groups;
mod human;
mod launchers;
mod layers;
mod roles;
mod sessions;
mod violations;
mod work;
