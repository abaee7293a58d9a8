//! The real terminal host with real terminals: the test plays launcher and broker.
// Far beyond anything healthy, deadlines for what would hang need a clock.
#![allow(clippy::disallowed_methods)]

mod flow;
mod host;
mod input;
mod lifecycle;
mod programs;
mod queries;
mod waits;
