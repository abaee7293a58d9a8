//! The top-level statements of an execution: a worker tells each one that ended, and nobody waits for it.

use serde_json::Value;
use shoal_journal::{Closing, Kind};
use shoal_proto::broker_worker::Statement;

use crate::broker::Broker;
use crate::runs::Stage;
use crate::sessions::Sid;

/// Statement rows of one execution; more are told by the execution's own row alone.
const MAX_STATEMENTS: usize = 10_000;

impl Broker {
    /// Keeps the row of a statement, which is written in the transaction that closes its execution.
    pub(crate) fn on_statement(&mut self, sid: Sid, ended: Statement) -> Result<(), &'static str> {
        let Some(run) = self.runs.of(sid, ended.run) else { return Ok(()) };
        match run.stage {
            Stage::Running { .. } if run.finished.is_none() => {}
            // It was aborted meanwhile.
            Stage::AwaitClose => return Ok(()),
            Stage::AwaitClaim | Stage::AwaitRow | Stage::Running { .. } => {
                return Err("a statement of what does not run");
            }
        }
        // Statements are parts of the source, so more text than it has comes from no honest worker, and is not kept for one.
        let is_room = run.statements.len() < MAX_STATEMENTS && ended.src.len() <= run.untold;
        if !is_room {
            return Ok(());
        }
        run.untold -= ended.src.len();
        let principal = run.principal.clone();
        let dur_ns = i64::try_from(ended.dur_ns).unwrap_or(i64::MAX);
        let mut row = self.plain_row(Kind::Statement, Some(sid), &principal, Value::Null);
        row.detail = None;
        row.src = ended.src.into_string();
        row.ts = self.now.ns.saturating_sub(dur_ns);
        let closing = Closing { dur_ns, status: ended.status, ok: ended.ok, ..Closing::default() };
        if let Some(run) = self.runs.at_mut(ended.run) {
            run.statements.push((row, closing));
        }
        Ok(())
    }
}
