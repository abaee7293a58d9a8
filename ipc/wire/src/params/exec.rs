//! `exec` and the syntax methods.

use serde_json::Value;

use super::{Int, Member, Members, Params, Text, params, words};
use crate::elide::ElideSpec;
use crate::error::RpcError;
use crate::limits;

words! {
    /// What `exec` is to do.
    Mode {
        /// Run the source.
        Run = "run",
        /// Derive, judge and store a plan.
        Plan = "plan",
        /// Always refused: applying is `plan.apply`.
        Approved = "approved",
    }
}

words! {
    /// How the last statement is treated.
    Position {
        /// A final command that fails raises.
        Stmt = "stmt",
        /// The last expression is the result, a failed command included.
        Value = "value",
    }
}

/// Milliseconds from 0.
pub type Millis = Int<0, { i64::MAX }>;
/// Milliseconds until a run is ended.
pub type Deadline = Int<1, { limits::DEADLINE_MS }>;

/// An idempotency key of 1 to 128 characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key(pub String);

impl Member for Key {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        let key = String::read(param, text)?;
        if (1..=limits::KEY_CHARS).contains(&key.chars().take(limits::KEY_CHARS.saturating_add(1)).count()) {
            return Ok(Key(key));
        }
        Err(RpcError::out_of_range(param, "a string of 1 to 128 characters"))
    }
}

/// `exec`.
#[derive(Clone, Debug, PartialEq)]
pub struct Exec {
    /// A whole program.
    pub src: String,
    /// Run or plan.
    pub mode: Mode,
    /// Position of the last statement.
    pub position: Position,
    /// `async`, or its alias `background`: answer at once with a task.
    pub background: bool,
    /// How long the caller waits.
    pub timeout_ms: Option<Millis>,
    /// How long the run may take.
    pub deadline_ms: Option<Deadline>,
    /// Idempotency key.
    pub key: Option<Key>,
    /// Budgets of the answer.
    pub elide: ElideSpec,
    /// Accepted only beside the mode that is refused.
    pub plan_ref: Option<String>,
}

impl Params for Exec {
    const MEMBERS: &'static [&'static str] =
        &["src", "mode", "position", "async", "background", "timeout_ms", "deadline_ms", "key", "elide", "plan_ref"];

    fn take(members: &mut Members<'_>) -> Result<Self, RpcError> {
        let exec = Exec {
            src: members.required("src")?,
            mode: members.optional("mode")?.unwrap_or(Mode::Run),
            position: members.optional("position")?.unwrap_or(Position::Stmt),
            background: members.aliased("async", "background")?.unwrap_or(false),
            timeout_ms: members.optional("timeout_ms")?,
            deadline_ms: members.optional("deadline_ms")?,
            key: members.optional("key")?,
            elide: members.optional("elide")?.unwrap_or_default(),
            plan_ref: members.optional("plan_ref")?,
        };
        if exec.plan_ref.is_some() && exec.mode != Mode::Approved {
            return Err(RpcError::unknown_member("plan_ref", None));
        }
        Ok(exec)
    }
}

params! {
    /// `parse`.
    #[derive(Eq)]
    Parse {
        /// Source to parse.
        req src: String,
    }
}

params! {
    /// `complete`.
    #[derive(Eq)]
    Complete {
        /// Source so far.
        req src: String,
        /// Byte offset; the end of `src` when absent.
        opt cursor: u64,
    }
}

params! {
    /// `explain`; `src` wins when both are given, neither is `missing`.
    Explain {
        /// Source to explain.
        opt src: String,
        /// Syntax tree to explain.
        opt ast: Value,
    }
}

/// A note of at most 1 KiB.
pub type Note = Text<0, { limits::NOTE_BYTES }>;
