//! Plan and approval methods.

use serde_json::Value;

use super::exec::{Deadline, Millis, Note};
use super::{Int, Member, Members, Params, params, words};
use crate::elide::ElideSpec;
use crate::error::{Reason, RpcError};

params! {
    /// `plan.get`.
    #[derive(Eq)]
    PlanGet {
        /// `plan:HEX32`.
        req plan_ref: String,
    }
}

/// `plan.apply`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanApply {
    /// `plan:HEX32`.
    pub plan_ref: String,
    /// `async`: answer at once with a task.
    pub background: bool,
    /// How long the caller waits.
    pub timeout_ms: Option<Millis>,
    /// How long the run may take.
    pub deadline_ms: Option<Deadline>,
    /// Budgets of the answer.
    pub elide: ElideSpec,
}

impl Params for PlanApply {
    const MEMBERS: &'static [&'static str] = &["plan_ref", "async", "background", "timeout_ms", "deadline_ms", "elide"];

    fn take(members: &mut Members<'_>) -> Result<Self, RpcError> {
        Ok(PlanApply {
            plan_ref: members.required("plan_ref")?,
            background: members.aliased("async", "background")?.unwrap_or(false),
            timeout_ms: members.optional("timeout_ms")?,
            deadline_ms: members.optional("deadline_ms")?,
            elide: members.optional("elide")?.unwrap_or_default(),
        })
    }
}

/// An effect named by a string or by an object with `kind`, as submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectName(pub String);

impl Member for EffectName {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        let name = match Value::read(param, text)? {
            Value::String(name) => name,
            Value::Object(mut members) => match members.remove("kind") {
                Some(Value::String(name)) => name,
                _ => return Err(RpcError::mistyped(param, "a string, or an object with a string `kind`")),
            },
            _ => return Err(RpcError::mistyped(param, "a string, or an object with a string `kind`")),
        };
        match crate::effect::kind(&name) {
            Some(_) => Ok(EffectName(name)),
            None => Err(RpcError::invalid(param, Reason::Range, format!("unknown effect kind `{name}`"))
                .and("expected", format!("one of {}", crate::effect::KINDS.join(", ")))),
        }
    }
}

params! {
    /// `cap.request`.
    #[derive(Eq)]
    CapRequest {
        /// `plan:HEX32`.
        req plan_ref: String,
        /// Effects asked for; empty means all.
        def effects: Vec<EffectName> = Vec::new(),
    }
}

words! {
    /// Which approvals are listed.
    ApprovalState {
        /// Those that wait.
        Pending = "pending",
        /// Decided ones too.
        All = "all",
    }
}

params! {
    /// `approval.list`.
    #[derive(Eq)]
    ApprovalList {
        /// One plan only.
        opt plan_ref: String,
        /// Pending, or all.
        def state: ApprovalState = ApprovalState::Pending,
        /// Records at most.
        def limit: Int<1, 1000> = Int::clamped(100),
    }
}

words! {
    /// A decision.
    Decision {
        /// Yes.
        Approve = "approve",
        /// No.
        Deny = "deny",
    }
}

words! {
    /// Through whom a decision comes.
    Via {
        /// The person at an MCP client.
        Elicitation = "elicitation",
    }
}

params! {
    /// `approval.decide`.
    #[derive(Eq)]
    ApprovalDecide {
        /// `plan:HEX32`.
        req plan_ref: String,
        /// Yes or no.
        req decision: Decision,
        /// Effects approved; empty means all.
        def effects: Vec<EffectName> = Vec::new(),
        /// Note for the record.
        opt note: Note,
        /// Set by the facade alone.
        opt via: Via,
    }
}
