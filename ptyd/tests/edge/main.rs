//! The real ptyd between a fake launcher and a fake broker, with real programs on the terminals.
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod screens;
mod setup;
mod typing;
