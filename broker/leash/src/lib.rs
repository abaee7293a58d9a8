//! Judgement of effects against the compiled rules of a principal.
//!
//! Policy is written by a person in `leash.toml`, compiled by `shoal-policy` to [`Section`]s, and judged here: the same
//! function serves the broker's verdicts, the worker's early errors and the launcher's gate. The crate is pure.
//!
//! Invariant: a [`Grant`] can only be made by [`judge`] or by [`Judgement::approved`]; what starts work takes one.
#![forbid(unsafe_code)]

mod effect;
mod explain;
mod glob;
mod judge;
mod spawn;

pub use effect::{Effect, Kind};
pub use explain::{Explanation, explain};
pub use glob::{host_port_matches, name_matches, normalise, path_matches};
pub use judge::{Grant, Judgement, Refusal, Verdict, judge};
pub use shoal_proto::section::{Approve, AutoApply, Network, Opaque, Section, Sections};
pub use spawn::{SpawnVerdict, judge_spawn};
