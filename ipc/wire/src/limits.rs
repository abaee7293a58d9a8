//! Limits of the client-facing protocol, each with its reason.

use crate::json::JsonLimits;

/// One frame including its LF, in both directions: the most one peer makes another hold for a single message.
pub const FRAME_BYTES: usize = 16 * 1024 * 1024;
/// JSON a client may send: deep enough for every request there is, shallow enough for recursive readers.
pub const INPUT_JSON: JsonLimits =
    JsonLimits { depth: 64, nodes: 65_536, items: 16_384, key_bytes: 64 * 1024, number_bytes: 1024 };
/// A started frame must be complete within this time, so that half a frame cannot hold a connection.
pub const FRAME_TIME_MS: u64 = 10_000;
/// Output a connection may leave unread before it is closed.
pub const UNREAD_OUTPUT_BYTES: usize = 32 * 1024 * 1024;
/// Requests of one connection in work; beyond it the connection is not read.
pub const PIPELINED_REQUESTS: usize = 256;
/// Request text of one connection in work, for the same purpose.
pub const PIPELINED_BYTES: usize = 32 * 1024 * 1024;
/// A connection that has said nothing yet is closed after this much silence: others may be waiting for its place.
pub const UNATTACHED_SILENCE_MS: u64 = 10_000;
/// One that has spoken and is not attached waits for nobody's place, so it may think longer.
pub const UNATTACHED_PAUSE_MS: u64 = 60_000;
/// Time new connections wait for a broker that is away before they are told to try again.
pub const BACKLOG_WAIT_MS: u64 = 500;

/// Text of `render` and of facade text items.
pub const TEXT_BYTES: usize = 64 * 1024;
/// Content that `raw` returns in one piece.
pub const RAW_BYTES: u64 = 64 * 1024;
/// Bytes of one `blob.get` page.
pub const BLOB_PAGE_BYTES: i64 = 64 * 1024;
/// `err` of an outcome: above it the first and last half remain.
pub const STDERR_BYTES: usize = 8192;
/// Strings outside values (messages, commands, directories).
pub const PLAIN_TEXT_BYTES: usize = 4096;
/// A `shoal://` URI.
pub const URI_BYTES: usize = 4096;

/// Longest time an execution may ask for as its deadline: one day.
pub const DEADLINE_MS: i64 = 86_400_000;
/// An idempotency key, in characters.
pub const KEY_CHARS: usize = 128;
/// Content bytes of one `task.output` page.
pub const TASK_OUTPUT_BYTES: i64 = 65_536;
/// Kept head and tail of a run's output log.
pub const TASK_LOG_HEAD_BYTES: usize = 256 * 1024;
/// See [`TASK_LOG_HEAD_BYTES`].
pub const TASK_LOG_TAIL_BYTES: usize = 768 * 1024;
/// Source shown in a task record, in characters.
pub const TASK_SRC_CHARS: usize = 200;
/// Source shown in an approval.
pub const APPROVAL_SRC_BYTES: usize = 8192;
/// Notes and reasons people write.
pub const NOTE_BYTES: usize = 1024;
/// Events one `events.read` returns.
pub const EVENTS_PAGE: u64 = 1024;
/// Bytes one `events.read` returns.
pub const EVENTS_PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Payload of `events.publish`.
pub const PUBLISH_BYTES: usize = 64 * 1024;
/// Rows of one `journal.query`, default and most.
pub const JOURNAL_ROWS: u64 = 100;
/// See [`JOURNAL_ROWS`].
pub const JOURNAL_ROWS_MAX: u64 = 10_000;
/// Bytes of one `journal.query` answer.
pub const JOURNAL_BYTES: usize = 8 * 1024 * 1024;
/// Input of one `pty.send` after decoding.
pub const PTY_INPUT_BYTES: usize = 1024 * 1024;
/// Nesting of `pty.send` input arrays.
pub const PTY_INPUT_DEPTH: usize = 4;
/// Sides of a terminal; the grid then has at most 1,000,000 cells.
pub const PTY_SIDE: i64 = 1000;
/// Longest wait of `pty.read`.
pub const PTY_WAIT_MS: i64 = 45_000;

/// A quota: reaching it is answered with `QUOTA_EXCEEDED` and this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Name on the wire and in `--limit NAME=VALUE`.
    pub name: &'static str,
    /// Value when nothing else is configured.
    pub default: u64,
}

/// Every quota of a kernel.
pub const QUOTAS: &[Quota] = &[
    // As many as there may be sessions: whoever opens a session attaches to it.
    Quota { name: "connections", default: 256 },
    Quota { name: "unattached", default: 16 },
    Quota { name: "sessions", default: 256 },
    Quota { name: "execs_per_session", default: 16 },
    Quota { name: "tasks", default: 128 },
    Quota { name: "plans_per_owner", default: 256 },
    Quota { name: "plan_source_bytes", default: 64 * 1024 * 1024 },
    Quota { name: "ptys_per_session", default: 32 },
    Quota { name: "ptys_per_principal", default: 64 },
    Quota { name: "ptys", default: 256 },
    Quota { name: "subscriptions", default: 256 },
    Quota { name: "user_channels", default: 256 },
    Quota { name: "blob_reads", default: 64 },
    Quota { name: "watches_per_session", default: 5 },
];
/// Window in which `blob_reads` counts.
pub const BLOB_READS_WINDOW_MS: u64 = 10_000;
/// Task records kept per session after their end.
pub const KEPT_TASKS: usize = 128;
/// Transcript values held in memory per session.
pub const TRANSCRIPT_VALUES: usize = 1024;
/// Bytes of transcript values held in memory per session.
pub const TRANSCRIPT_BYTES: u64 = 256 * 1024 * 1024;
/// Idempotency keys kept per session.
pub const KEPT_KEYS: usize = 1024;
/// Events a ring keeps per topic.
pub const RING_EVENTS: usize = 1024;
/// Bytes a ring keeps per topic.
pub const RING_BYTES: usize = 2 * 1024 * 1024;
/// Events a subscription queues before it drops.
pub const SUBSCRIPTION_EVENTS: usize = 256;
/// Bytes a subscription queues before it drops.
pub const SUBSCRIPTION_BYTES: usize = 512 * 1024;
/// Time a plan can be applied in.
pub const PLAN_LIFE_NS: i64 = 24 * 3600 * 1_000_000_000;
