//! Errors of the command, with their exit codes: 1 failed, 2 usage.

use std::process::ExitCode;

use shoal_client::{CallError, ConnectError};
use shoal_wire::{Code, RpcError};

/// Why the command failed.
#[derive(Debug)]
pub(crate) enum Fail {
    /// The words do not fit.
    Usage(String),
    /// No connection.
    Connect(ConnectError),
    /// The kernel refused, or the call was lost.
    Call(CallError),
    /// A failure that may come of two versions talking past each other.
    Skewed {
        /// What failed.
        fail: Box<Fail>,
        /// Both versions.
        skew: String,
    },
    /// Anything else, said in one line.
    Said(String),
    /// Nobody reads our output any more.
    ClosedOutput,
}

impl Fail {
    /// Exit code.
    pub(crate) fn code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Connect(_) | Self::Call(_) | Self::Skewed { .. } | Self::Said(_) | Self::ClosedOutput => {
                ExitCode::FAILURE
            }
        }
    }
}

impl std::fmt::Display for Fail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage(text) | Self::Said(text) => f.write_str(text),
            Self::Connect(e @ ConnectError::Refused(error)) => write!(f, "{e}{}", beside(error)),
            Self::Connect(e) => write!(f, "{e}"),
            Self::Call(e) => match e.kernel() {
                Some(error) => write!(f, "{e}{}", beside(error)),
                None => write!(f, "{e}"),
            },
            Self::Skewed { fail, skew } => {
                write!(f, "{fail}; {skew}: end it with `shoal kernel stop`, the next call starts the new one")
            }
            Self::ClosedOutput => f.write_str("stdout is closed"),
        }
    }
}

/// What helps beside the message: the kernel's own hint, else the command that shows what there is, else all it said.
fn beside(error: &RpcError) -> String {
    let data = error.data.as_ref();
    if let Some(hint) = data.and_then(|data| data.get("hint")?.as_str()).filter(|hint| !hint.is_empty()) {
        return format!("; {hint}");
    }
    match next(error) {
        Some(command) => format!("; look with: {command}"),
        None => data.map(|data| format!(" {data}")).unwrap_or_default(),
    }
}

/// The command that shows what an error is about.
fn next(error: &RpcError) -> Option<&'static str> {
    const BY_REASON: [(&str, &str); 4] = [
        ("unknown_session", "shoal session list"),
        ("unknown_token", "shoal token list"),
        ("confinement", "shoal doctor"),
        ("policy", "shoal policy explain SRC"),
    ];
    const BY_CODE: [(Code, &str); 6] = [
        (Code::SessionFrozen, "shoal session list; it goes on with: shoal session thaw NAME"),
        (Code::UnknownPty, "shoal pty list"),
        (Code::UnknownTask, "shoal top"),
        (Code::UnknownPlan, "shoal approvals list --all"),
        (Code::ApprovalRequired, "shoal approvals list"),
        (Code::JournalUnavailable, "shoal doctor"),
    ];
    let by_reason = BY_REASON.iter().find(|(reason, _)| error.reason() == Some(reason)).map(|(_, next)| *next);
    by_reason.or_else(|| BY_CODE.iter().find(|(code, _)| error.is(*code)).map(|(_, next)| *next))
}

impl From<ConnectError> for Fail {
    fn from(e: ConnectError) -> Self {
        Self::Connect(e)
    }
}

impl From<CallError> for Fail {
    fn from(e: CallError) -> Self {
        Self::Call(e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn error(code: Code, data: serde_json::Value) -> RpcError {
        RpcError { data: Some(data), ..RpcError::new(code, "no") }
    }

    #[test]
    fn an_error_has_a_hint_or_a_command_or_all_there_is() {
        let said = |code, data| beside(&error(code, data));
        assert_eq!(said(Code::UnknownPty, json!({"hint": "open one"})), "; open one");
        assert_eq!(said(Code::UnknownPty, json!({"pty_id": "pty:9"})), "; look with: shoal pty list");
        assert_eq!(said(Code::InvalidParams, json!({"reason": "unknown_session"})), "; look with: shoal session list");
        assert_eq!(said(Code::InvalidParams, json!({"param": "x"})), " {\"param\":\"x\"}");
    }
}
