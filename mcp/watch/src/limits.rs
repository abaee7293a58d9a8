//! Limits of watches, each with its reason.

use crate::Millis;

/// Watches of one session: each may cost a server process and a thread.
pub const WATCHES: usize = 5;
/// Source of a filter: it is parsed whenever its watch starts, and kept with it.
pub const SOURCE_BYTES: usize = 64 * 1024;
/// Time of one filter run; a filter is a line of glue, not a program.
pub const FILTER_MS: Millis = 2000;
/// Memory of one filter run.
pub const FILTER_BYTES: usize = 64 * 1024 * 1024;
/// Resource reads and tool calls of one filter run, each.
pub const FILTER_CALLS: usize = 10;
/// Events processed from one read, so that a flood cannot hold the session.
pub const EVENTS_PER_PASS: usize = 100;
/// Lines of one notice; more do not help a reader.
pub const LINES: usize = 20;
/// Bytes of one line.
pub const LINE_BYTES: usize = 1024;
/// A batch is sent this long after its last line.
pub const QUIET_MS: Millis = 3000;
/// A batch is sent this long after its first line at the latest.
pub const BURST_MS: Millis = 15_000;
/// Waits before the attempts to subscribe again; after the last the watch has failed.
pub const RETRY_MS: [Millis; 5] = [1000, 2000, 4000, 8000, 16_000];
/// A server acknowledges a subscription within this time.
pub const ACK_MS: Millis = 10_000;
/// A server answers a read within this time, which includes the start of its source.
pub const READ_MS: Millis = 30_000;
/// A server answers the probe of its version within this time.
pub const PROBE_MS: Millis = 5000;
/// Objects whose last line is remembered.
pub const OBJECTS: usize = 1024;
