//! Jails of a Shoal kernel.
//!
//! A jail is data before it is anything else: [`plan::plan`] turns a compiled section, a directory and what the host
//! offers into a [`plan::Plan`], a list of steps that can be read and tested without making one. The supervisor makes a
//! process in new namespaces, which takes the steps ([`plan::Plan::enter`]) and becomes the launcher; the launcher
//! confines itself to the plan's [`Domain`](shoal_proto::supervisor_launcher::Domain) ([`confine::session`]) before it
//! starts anything; worker and ptyd add a filter of their own ([`confine::worker`], [`confine::ptyd`]).
//!
//! What holds is found by trial ([`probe`]): a canary in a throw-away jail tries what a session must not be able to do.
//!
//! On macOS a jail is a Seatbelt profile ([`seatbelt`]) around the launcher and everything below it: no namespaces, no
//! filters, no second layer. `docs/security.md` says what that does not hold.
//!
//! Invariant: a step that fails fails the session. There is no jail with a step left out.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::indexing_slicing))]
// The jail's set-up is file system work: it looks at paths, makes directories and files in the new view.
#![allow(clippy::disallowed_methods)]

mod failed;
mod host;
mod lower;
mod order;
pub mod seatbelt;

#[cfg(target_os = "linux")]
mod alias;
#[cfg(target_os = "linux")]
pub mod confine;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod holes;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod protect;
#[cfg(target_os = "linux")]
mod step;
#[cfg(target_os = "linux")]
mod view;

#[cfg_attr(target_os = "macos", path = "darwin/make.rs")]
pub mod make;
#[cfg_attr(target_os = "macos", path = "darwin/plan.rs")]
pub mod plan;
#[cfg_attr(target_os = "macos", path = "darwin/probe.rs")]
pub mod probe;

pub use failed::Failed;
#[cfg(target_os = "linux")]
pub use step::Step;
