//! Log events of watches: one JSON object per line on stderr, which a verbose kernel passes on. Notices are logged by the
//! broker, which numbers them.

use std::io::Write as _;

use serde_json::{Value as Json, json};
use shoal_eval::host::Clock as _;
use shoal_wire::RpcError;

use crate::clock::SystemClock;
use crate::session::Session;

/// Logs an event.
pub(crate) fn event(session: &Session, event: &str, name: &str, more: Json) {
    let ts = i64::try_from(SystemClock.now().as_nanosecond()).unwrap_or(i64::MAX);
    let facts = &session.facts;
    let mut line =
        json!({"ts": ts, "event": event, "owner": facts["owner"], "session": facts["session"], "name": name});
    if let (Some(members), Json::Object(more)) = (line.as_object_mut(), more) {
        members.extend(more);
    }
    // Nobody is left to tell when standard error is gone.
    writeln!(std::io::stderr(), "{line}").ok();
}

/// Something of a watch that could not be told to the broker.
pub(crate) fn untold(name: &str, error: &RpcError) {
    writeln!(std::io::stderr(), "shoal-worker: watch {name}: {}", error.message).ok();
}
