//! Error codes of the kernel protocol and their names.

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $number:literal, $name:literal;)*) => {
        /// An error code. Numbers and names are contract; message texts are not.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i32)]
        pub enum Code { $($(#[$doc])* $variant = $number,)* }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            /// The name shown beside the number.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }
        }
    };
}

codes! {
    /// A line is not JSON; the facade alone answers it.
    ParseError = -32700, "PARSE";
    /// The envelope is not a JSON-RPC 2.0 request.
    InvalidRequest = -32600, "INVALID_REQUEST";
    /// No such method.
    MethodNotFound = -32601, "METHOD_NOT_FOUND";
    /// Parameters do not decode or have bad values.
    InvalidParams = -32602, "INVALID_PARAMS";
    /// Serialisation or I/O failed inside the kernel.
    Internal = -32603, "INTERNAL";
    /// The method needs an attachment first.
    NotAttached = -32000, "NOT_ATTACHED";
    /// The source does not parse.
    SourceError = -32001, "PARSE_ERROR";
    /// Evaluation raised.
    Raised = -32002, "RAISED";
    /// No such value or blob, or none the caller may see.
    UnknownRef = -32004, "UNKNOWN_REF";
    /// Selector, slice, format or size do not fit the value.
    BadPath = -32005, "BAD_PATH_OR_SLICE";
    /// Refused by policy, permission or missing confinement.
    LeashDenied = -32010, "LEASH_DENIED";
    /// The verdict is that somebody has to approve.
    ApprovalRequired = -32011, "APPROVAL_REQUIRED";
    /// No plan that can be applied under this reference.
    UnknownPlan = -32012, "UNKNOWN_PLAN";
    /// Suspend or resume in a state that does not allow it.
    TaskControl = -32020, "TASK_CONTROL_UNAVAILABLE";
    /// No such task in this session.
    UnknownTask = -32021, "UNKNOWN_TASK";
    /// No such terminal in this session.
    UnknownPty = -32022, "UNKNOWN_PTY";
    /// A terminal could not be started.
    PtySpawnFailed = -32023, "PTY_SPAWN_FAILED";
    /// Attachment refused or token invalid.
    AuthFailed = -32030, "AUTH_FAILED";
    /// A quota is used up.
    QuotaExceeded = -32040, "QUOTA_EXCEEDED";
    /// The journal cannot be written; nothing ran.
    JournalUnavailable = -32041, "JOURNAL_UNAVAILABLE";
    /// The session's worker died while it served the request.
    WorkerLost = -32050, "WORKER_LOST";
    /// The attached session was killed, expired or shut down.
    SessionEnded = -32051, "SESSION_ENDED";
    /// Work was asked of a frozen session.
    SessionFrozen = -32052, "SESSION_FROZEN";
    /// The broker is being replaced; connect again.
    Restarting = -32053, "RESTARTING";
    /// A watch cannot be started.
    WatchFailed = -32060, "WATCH_FAILED";
}

impl Code {
    /// The number on the wire.
    pub fn number(self) -> i64 {
        i64::from(self as i32)
    }

    /// The code with this number, if it is one of ours.
    pub fn from_number(number: i64) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.number() == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_distinct_and_found_again() {
        for code in Code::ALL {
            assert_eq!(Code::from_number(code.number()), Some(*code));
        }
        assert_eq!(Code::from_number(-1), None);
    }
}
