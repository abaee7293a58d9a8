//! Error codes of the language. Codes are stable; the texts of errors are not.

macro_rules! codes {
    ($($name:ident = $text:literal, $meaning:literal;)*) => {
        $(#[doc = $meaning] pub const $name: &str = $text;)*
        /// Every code the language itself raises. Programs may raise further ones.
        pub const ALL: &[&str] = &[$($text),*];
    };
}

codes! {
    PARSE_ERROR = "parse_error", "The source does not parse.";
    TYPE_ERROR = "type_error", "The operation is not defined for these types.";
    ARG_ERROR = "arg_error", "An argument is missing, surplus or malformed.";
    UNDEFINED_VAR = "undefined_var", "An unknown name in an expression.";
    FIELD_MISSING = "field_missing", "No such field, key, method or member.";
    INDEX_RANGE = "index_range", "An index outside the collection.";
    DIV_ZERO = "div_zero", "Division by zero.";
    OVERFLOW = "overflow", "A number outside its range.";
    RECURSION_LIMIT = "recursion_limit", "Too many nested calls.";
    ASSERT_FAILED = "assert_failed", "An assertion did not hold.";
    UTF8_ERROR = "utf8_error", "Text is needed and the bytes are not UTF-8.";
    TOO_LARGE = "too_large", "A fixed size limit.";
    NOT_FOUND = "not_found", "A file, program, command, resource or reference that does not exist.";
    EXISTS = "exists", "Something exists that must not.";
    IS_DIR = "is_dir", "A directory where a file is needed.";
    NOT_DIR = "not_dir", "A file where a directory is needed.";
    PERMISSION = "permission", "Refused by the operating system.";
    IO_ERROR = "io_error", "Another input or output failure.";
    NO_MATCHES = "no_matches", "A pattern or list that names nothing.";
    CMD_FAILED = "cmd_failed", "A command's status is not accepted.";
    FEED_ERROR = "feed_error", "A value that cannot be standard input.";
    TIMEOUT = "timeout", "A wait ran out.";
    CANCELLED = "cancelled", "The run or task was cancelled.";
    BUDGET_EXCEEDED = "budget_exceeded", "The step or memory budget is used up.";
    RAISED = "raised", "Raised by the program without a code.";
    STREAM_CONSUMED = "stream_consumed", "A stream used twice.";
    STREAM_UNBOUNDED = "stream_unbounded", "An endless stream gathered.";
    CHANNEL_CLOSED = "channel_closed", "An emit after the end.";
    NET_ERROR = "net_error", "A transport failure.";
    SPAWN_DENIED = "spawn_denied", "The policy refused a launch.";
    NOT_PERMITTED = "not_permitted", "The policy refused another effect.";
    CWD_GONE = "cwd_gone", "The working directory has disappeared.";
    WATCH_FAILED = "watch_failed", "The server, subscription or baseline of a watch failed.";
    DEADLINE_EXCEEDED = "deadline_exceeded", "The host's deadline for the run.";
    PLAN_DRIFTED = "plan_drifted", "Something changed between plan and apply.";
    STALE_UNDO = "stale_undo", "Something changed between an entry and its undo.";
    RUNNER_NOT_FOUND = "runner_not_found", "There is no way to run this file.";
    CUSTOM = "custom", "Session, navigation and control-flow errors without a code of their own.";
    REEF_UNLOCKED = "reef_unlocked", "A toolchain manifest without a lock.";
    REEF_DRIFT = "reef_drift", "A toolchain that no longer matches its lock.";
    REEF_CONFLICT = "reef_conflict", "Toolchain manifests that contradict each other.";
    REEF_NOT_FOUND = "reef_not_found", "A toolchain that no provider has.";
    REEF_PROVIDER = "reef_provider", "A toolchain provider that failed.";
}
