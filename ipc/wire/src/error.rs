//! The error object of an answer, with one builder per code so that `data` has one shape everywhere.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::code::Code;

/// `{"code":int,"message":str,"data"?:object}`. `data` is absent when there is nothing to say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    /// Number of the code; peers of later builds may send ones that [`Code`] does not name.
    pub code: i64,
    /// A sentence for people.
    pub message: String,
    /// Members that depend on the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl std::fmt::Display for RpcError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for RpcError {}

/// Why a parameter was refused: the `reason` of [`Code::InvalidParams`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is its wire text, listed in `text`")]
pub enum Reason {
    Missing,
    Type,
    Range,
    Syntax,
    UnknownMember,
    Conflict,
    Exists,
    KeyReuse,
    UnknownSession,
    UnknownToken,
    NotADirectory,
    NotWritable,
    TooLarge,
    LineTooLong,
    LangUnavailable,
    FilterError,
}

impl Reason {
    /// The text on the wire.
    pub fn text(self) -> &'static str {
        match self {
            Reason::Missing => "missing",
            Reason::Type => "type",
            Reason::Range => "range",
            Reason::Syntax => "syntax",
            Reason::UnknownMember => "unknown_member",
            Reason::Conflict => "conflict",
            Reason::Exists => "exists",
            Reason::KeyReuse => "key_reuse",
            Reason::UnknownSession => "unknown_session",
            Reason::UnknownToken => "unknown_token",
            Reason::NotADirectory => "not_a_directory",
            Reason::NotWritable => "not_writable",
            Reason::TooLarge => "too_large",
            Reason::LineTooLong => "line_too_long",
            Reason::LangUnavailable => "lang_unavailable",
            Reason::FilterError => "filter_error",
        }
    }
}

impl RpcError {
    /// An error without data.
    pub fn new(code: Code, message: impl Into<String>) -> RpcError {
        RpcError { code: code.number(), message: message.into(), data: None }
    }

    /// The same error with `data`; an empty object counts as none.
    #[must_use]
    pub fn with(mut self, data: Value) -> RpcError {
        let empty = data.as_object().is_some_and(Map::is_empty) || data.is_null();
        self.data = (!empty).then_some(data);
        self
    }

    /// The same error with one more member in `data`.
    #[must_use]
    pub fn and(mut self, member: &str, value: impl Into<Value>) -> RpcError {
        let data = self.data.get_or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(members) = data {
            members.insert(member.to_owned(), value.into());
        }
        self
    }

    /// Whether this is the error of `code`.
    pub fn is(&self, code: Code) -> bool {
        self.code == code.number()
    }

    /// `data.reason`, when there is one.
    pub fn reason(&self) -> Option<&str> {
        self.data.as_ref()?.get("reason")?.as_str()
    }

    /// -32600 for an envelope that is no request.
    pub fn invalid_request(message: impl Into<String>) -> RpcError {
        RpcError::new(Code::InvalidRequest, message)
    }

    /// -32601.
    pub fn method_not_found(method: &str) -> RpcError {
        RpcError::new(Code::MethodNotFound, "method not found").with(json!({ "method": method }))
    }

    /// -32602 with a message of the caller's.
    pub fn invalid(param: &str, reason: Reason, message: impl Into<String>) -> RpcError {
        RpcError::new(Code::InvalidParams, message).with(json!({ "param": param, "reason": reason.text() }))
    }

    /// -32602 for a required member that is absent.
    pub fn missing(param: &str) -> RpcError {
        RpcError::invalid(param, Reason::Missing, format!("missing member `{param}`"))
    }

    /// -32602 for a member of another JSON type.
    pub fn mistyped(param: &str, expected: &str) -> RpcError {
        RpcError::invalid(param, Reason::Type, format!("`{param}` must be {expected}")).and("expected", expected)
    }

    /// -32602 for a value outside its range; `expected` says what is valid.
    pub fn out_of_range(param: &str, expected: &str) -> RpcError {
        RpcError::invalid(param, Reason::Range, format!("`{param}` must be {expected}")).and("expected", expected)
    }

    /// -32602 for a member the method does not have.
    pub fn unknown_member(param: &str, nearest: Option<&str>) -> RpcError {
        let error = RpcError::invalid(param, Reason::UnknownMember, format!("unknown member `{param}`"));
        match nearest {
            Some(name) => error.and("nearest", name),
            None => error,
        }
    }

    /// -32603; `detail` is for the log reader as much as for the client.
    pub fn internal(detail: impl Into<String>) -> RpcError {
        RpcError::new(Code::Internal, "internal error").with(json!({ "detail": detail.into() }))
    }

    /// -32000.
    pub fn not_attached() -> RpcError {
        RpcError::new(Code::NotAttached, "attach to a session first")
    }

    /// -32001; `start` and `end` are byte offsets into the source.
    pub fn source(message: impl Into<String>, start: u64, end: u64, hint: Option<&str>, incomplete: bool) -> RpcError {
        RpcError::new(Code::SourceError, message)
            .with(json!({ "span": { "start": start, "end": end }, "hint": hint, "incomplete": incomplete }))
    }

    /// -32004 with reason `unknown`, `evicted` or `worker_lost`; `val` names a stored form that is left.
    pub fn unknown_ref(reference: &str, reason: &str, val: Option<&str>) -> RpcError {
        let error =
            RpcError::new(Code::UnknownRef, "unknown value ref").with(json!({ "ref": reference, "reason": reason }));
        match val {
            Some(val) => error.and("val", val),
            None => error,
        }
    }

    /// -32005 with reason `path`, `slice`, `format`, `too_large`, `not_a_stream` or `stream_consumed`.
    pub fn bad_path(reference: &str, path: Option<&str>, reason: &str, message: impl Into<String>) -> RpcError {
        let error = RpcError::new(Code::BadPath, message).with(json!({ "ref": reference }));
        match path {
            Some(path) => error.and("path", path),
            None => error,
        }
        .and("reason", reason)
    }

    /// -32010 with reason `policy`, `foreign_plan`, `approval_denied`, `use_plan_apply`, `taken` or `confinement`.
    pub fn denied(reason: &str, message: impl Into<String>) -> RpcError {
        RpcError::new(Code::LeashDenied, message).with(json!({ "reason": reason }))
    }

    /// -32010 for a missing permission; `need` is `human`, `approver` or `owner`.
    pub fn not_permitted(need: &str) -> RpcError {
        RpcError::denied("not_permitted", format!("this call needs the {need}")).and("need", need)
    }

    /// -32010 for claims the host does not hold.
    pub fn confinement(missing: &[&str], hint: &str) -> RpcError {
        RpcError::denied("confinement", "this host cannot confine the session as required")
            .and("missing", missing)
            .and("hint", hint)
    }

    /// -32011; add `plan_ref` or `cmd` with [`RpcError::and`].
    pub fn approval_required(effects: Value) -> RpcError {
        RpcError::new(Code::ApprovalRequired, "approval required").with(json!({ "effects": effects }))
    }

    /// -32012 with reason `unknown`, `expired`, `consumed` or `drifted`.
    pub fn unknown_plan(plan_ref: &str, reason: &str) -> RpcError {
        let message = match reason {
            "drifted" => "the plan no longer matches",
            "consumed" => "the plan was applied before; a plan runs once",
            "expired" => "the plan expired; plans live 24 hours",
            _ => "no plan has this plan_ref",
        };
        RpcError::new(Code::UnknownPlan, message).with(json!({ "plan_ref": plan_ref, "reason": reason }))
    }

    /// -32020.
    pub fn task_control(task: &str, state: &str) -> RpcError {
        RpcError::new(Code::TaskControl, format!("not possible while the task is {state}"))
            .with(json!({ "task": task, "state": state }))
    }

    /// -32021.
    pub fn unknown_task(task: &str) -> RpcError {
        RpcError::new(Code::UnknownTask, "unknown task ref").with(json!({ "task": task }))
    }

    /// -32022 with reason `unknown` or `closed`.
    pub fn unknown_pty(pty_id: &str, reason: &str) -> RpcError {
        RpcError::new(Code::UnknownPty, "unknown or closed pty_id").with(json!({ "pty_id": pty_id, "reason": reason }))
    }

    /// -32023 with reason `not_found`, `confinement`, `cwd_gone` or `os`.
    pub fn pty_spawn(cmd: &str, reason: &str, message: impl Into<String>, detail: &str) -> RpcError {
        RpcError::new(Code::PtySpawnFailed, message).with(json!({ "cmd": cmd, "reason": reason, "detail": detail }))
    }

    /// -32030 with reason `invalid`, `expired`, `revoked`, `token_required`, `session_descendant`, `no_token_store`.
    pub fn auth_failed(reason: &str, message: impl Into<String>) -> RpcError {
        RpcError::new(Code::AuthFailed, message).with(json!({ "reason": reason }))
    }

    /// -32040 for the quota of this name.
    pub fn quota(limit: &str, max: u64, used: u64, message: impl Into<String>) -> RpcError {
        RpcError::new(Code::QuotaExceeded, message).with(json!({ "limit": limit, "max": max, "used": used }))
    }

    /// -32041.
    pub fn journal_unavailable(detail: impl Into<String>) -> RpcError {
        RpcError::new(Code::JournalUnavailable, "the journal cannot be written; nothing ran")
            .with(json!({ "detail": detail.into() }))
    }

    /// -32050; `failed` when the session stays down until it is killed.
    pub fn worker_lost(session: &str, entry_id: Option<i64>, failed: bool, how: &str) -> RpcError {
        let mut error = RpcError::new(Code::WorkerLost, format!("the session's worker was lost ({how})"))
            .with(json!({ "session": session }));
        if let Some(id) = entry_id {
            error = error.and("entry_id", id);
        }
        if failed { error.and("failed", true) } else { error }
    }

    /// -32051 with reason `killed`, `idle` or `shutdown`.
    pub fn session_ended(session: &str, owner: &str, reason: &str, by: Option<&str>, note: Option<&str>) -> RpcError {
        RpcError::new(Code::SessionEnded, format!("session `{session}` has ended ({reason})"))
            .with(json!({ "session": session, "owner": owner, "reason": reason, "by": by, "note": note }))
    }

    /// -32052.
    pub fn session_frozen(session: &str, owner: &str) -> RpcError {
        RpcError::new(Code::SessionFrozen, format!("session `{session}` is frozen"))
            .with(json!({ "session": session, "owner": owner }))
    }

    /// -32053.
    pub fn restarting(retry_after_ms: u64) -> RpcError {
        RpcError::new(Code::Restarting, "kernel restarting").with(json!({ "retry_after_ms": retry_after_ms }))
    }

    /// -32060 with reason `no_server`, `spawn_failed`, `version`, `not_subscribable`, `read_failed` or `timeout`.
    pub fn watch_failed(uri: &str, server: Option<&str>, reason: &str, message: &str, detail: &str) -> RpcError {
        RpcError::new(Code::WatchFailed, message)
            .with(json!({ "uri": uri, "server": server, "reason": reason, "detail": detail }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_absent_when_there_is_nothing_to_say() {
        let text = serde_json::to_string(&RpcError::not_attached()).unwrap();
        assert_eq!(text, r#"{"code":-32000,"message":"attach to a session first"}"#);
        assert_eq!(RpcError::not_attached().with(json!({})).data, None);
    }

    #[test]
    fn unknown_member_names_the_nearest() {
        let error = RpcError::unknown_member("timeout", Some("timeout_ms"));
        assert_eq!(error.message, "unknown member `timeout`");
        assert_eq!(
            error.data.unwrap(),
            json!({"param": "timeout", "reason": "unknown_member", "nearest": "timeout_ms"})
        );
    }
}
