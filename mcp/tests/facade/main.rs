//! The facade as a process, between a scripted client and a scripted kernel.
// These tests start the facade and stand in for the kernel.
#![allow(clippy::disallowed_methods)]

mod approval;
mod client;
mod eras;
mod halves;
mod hostile;
mod kernel;
mod lines;
mod resources;
mod subscriptions;
mod tools;
