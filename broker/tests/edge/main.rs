//! The real broker between a scripted supervisor, scripted workers and real clients.

mod client;
mod kernel;
mod launcher;
mod worker;

mod authority;
mod executions;
mod frames;
mod life;
