//! Task records: what an execution looks like from outside, while it runs and, when kept, after its end.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use shoal_wire::{RpcError, limits};

use crate::json::{quoted, tagged_int, tagged_opt, tagged_record, tagged_str};
use crate::sessions::Sid;

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskState {
    /// It runs.
    Running,
    /// Its commands are stopped.
    Suspended,
    /// Its end is wanted.
    Cancelling,
    /// It ended well.
    Completed,
    /// It ended badly.
    Failed,
    /// It was ended.
    Cancelled,
}

impl TaskState {
    /// The word on the wire.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Cancelling => "cancelling",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// It will not change any more.
    pub(crate) fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// How a run ended, as far as the state of its task is concerned.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TaskEnd {
    /// A value; for a final outcome its fate.
    Value {
        /// Its number.
        out: u64,
        /// The value is fine.
        ok: bool,
        /// A final outcome died by a signal.
        signaled: bool,
        /// Exit code of a final outcome.
        exit_code: Option<i64>,
    },
    /// An RPC error.
    Error(RpcError),
}

/// Proof of what a cancel or deadline ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReceiptRecord {
    /// Gone.
    pub(crate) ended: Vec<i32>,
    /// Still there.
    pub(crate) survived: Vec<i32>,
    /// Last rung used.
    pub(crate) escalated: Option<&'static str>,
}

impl ReceiptRecord {
    /// One receipt for two ladders that were climbed on the same run, this one and an earlier one.
    pub(crate) fn after(mut self, earlier: Self) -> Self {
        let gone = earlier.ended.into_iter().chain(earlier.survived);
        let gone = gone.filter(|pid| !self.survived.contains(pid) && !self.ended.contains(pid));
        let gone: Vec<i32> = gone.collect();
        self.ended.extend(gone);
        self.ended.sort_unstable();
        let height = |rung: Option<&str>| ["int", "term", "kill"].iter().position(|name| Some(*name) == rung);
        if height(earlier.escalated) > height(self.escalated) {
            self.escalated = earlier.escalated;
        }
        self
    }

    /// The JSON of a receipt.
    pub(crate) fn to_json(&self) -> String {
        let list = |pids: &[i32]| pids.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
        let escalated = self.escalated.map_or("null".to_owned(), quoted);
        format!(r#"{{"ended":[{}],"survived":[{}],"escalated":{escalated}}}"#, list(&self.ended), list(&self.survived))
    }
}

/// The record of one execution.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// Number, also that of its run.
    pub(crate) n: u64,
    /// Its session.
    pub(crate) sid: Sid,
    /// Name of the session.
    pub(crate) session: Rc<str>,
    /// Whose session.
    pub(crate) owner: Rc<str>,
    /// Who asked.
    pub(crate) principal: Rc<str>,
    /// Where it is.
    pub(crate) state: TaskState,
    /// Its source, cut.
    pub(crate) src: String,
    /// Clients that wait for it.
    pub(crate) foreground: bool,
    /// Idempotency key.
    pub(crate) key: Option<String>,
    /// When it was submitted, ns.
    pub(crate) started_ns: i64,
    /// When it ended, ns.
    pub(crate) finished_ns: Option<i64>,
    /// Its result.
    pub(crate) result: Option<u64>,
    /// Its error.
    pub(crate) error: Option<RpcError>,
    /// Exit code of a final outcome.
    pub(crate) exit_code: Option<i64>,
    /// Its deadline.
    pub(crate) deadline_ms: Option<i64>,
    /// It ran into it.
    pub(crate) deadline_exceeded: bool,
    /// Output seen.
    pub(crate) stdout_bytes: u64,
    /// Output seen.
    pub(crate) stderr_bytes: u64,
    /// Descendants that hold output pipes.
    pub(crate) held_by: u64,
    /// Process groups of its commands, when they were last counted.
    pub(crate) groups: usize,
    /// What a cancel or deadline ended.
    pub(crate) receipt: Option<ReceiptRecord>,
    /// The record stays after the end.
    pub(crate) kept: bool,
    /// Its channel has begun: a client can name it.
    pub(crate) announced: bool,
    /// A cancel was asked for.
    pub(crate) cancel_requested: bool,
    /// When progress was told last.
    pub(crate) told: Option<Duration>,
}

/// Where a task belongs and what it does.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// Its session.
    pub(crate) sid: Sid,
    /// Name of the session.
    pub(crate) session: Rc<str>,
    /// Whose session.
    pub(crate) owner: Rc<str>,
    /// Who asked.
    pub(crate) principal: Rc<str>,
    /// Its whole source.
    pub(crate) src: Rc<str>,
    /// Idempotency key.
    pub(crate) key: Option<String>,
    /// Its deadline.
    pub(crate) deadline_ms: Option<i64>,
}

impl Task {
    /// The record of a run that was submitted at `started_ns`. One with a key stays after its end.
    pub(crate) fn new(n: u64, origin: Origin, started_ns: i64) -> Self {
        Self {
            n,
            sid: origin.sid,
            session: origin.session,
            owner: origin.owner,
            principal: origin.principal,
            state: TaskState::Running,
            src: Self::cut_src(&origin.src),
            foreground: false,
            kept: origin.key.is_some(),
            key: origin.key,
            started_ns,
            finished_ns: None,
            result: None,
            error: None,
            exit_code: None,
            deadline_ms: origin.deadline_ms,
            deadline_exceeded: false,
            stdout_bytes: 0,
            stderr_bytes: 0,
            held_by: 0,
            groups: 0,
            receipt: None,
            announced: false,
            cancel_requested: false,
            told: None,
        }
    }

    /// `task:N`.
    pub(crate) fn reference(&self) -> String {
        format!("task:{}", self.n)
    }

    /// Source as a record shows it.
    pub(crate) fn cut_src(src: &str) -> String {
        match src.char_indices().nth(limits::TASK_SRC_CHARS) {
            Some((at, _)) => src.get(..at).unwrap_or_default().to_owned(),
            None => src.to_owned(),
        }
    }

    /// The run ended: the table of protocol 5.2.
    pub(crate) fn end(&mut self, end: TaskEnd, now_ns: i64) {
        let cancelled = self.cancel_requested;
        self.finished_ns = Some(now_ns);
        self.foreground = false;
        self.state = match end {
            TaskEnd::Error(error) => {
                let session_over = error.is(shoal_wire::Code::SessionEnded);
                let lost = error.is(shoal_wire::Code::WorkerLost);
                self.error = Some(error);
                if session_over || (cancelled && !lost) { TaskState::Cancelled } else { TaskState::Failed }
            }
            TaskEnd::Value { out, ok, signaled, exit_code } => {
                self.result = Some(out);
                self.exit_code = exit_code;
                match ok {
                    true => TaskState::Completed,
                    false if cancelled && signaled => TaskState::Cancelled,
                    false => TaskState::Failed,
                }
            }
        };
    }

    /// The record as JSON; `extra` is more members, each with a leading comma.
    pub(crate) fn to_json(&self, extra: &str) -> String {
        let reference = self.reference();
        let opt_int = |n: Option<i64>| n.map_or("null".to_owned(), |n| n.to_string());
        let result_ref = self.result.map_or("null".to_owned(), |n| format!("\"out:{n}\""));
        let result_uri = self.result.map_or("null".to_owned(), |n| format!("\"shoal://out/{n}\""));
        let error = self.error.as_ref().map_or("null".to_owned(), error_json);
        let live = !self.state.is_terminal();
        let (suspend, resume) = (self.state == TaskState::Running, self.state == TaskState::Suspended);
        format!(
            concat!(
                r#"{{"id":"{id}","task":"{id}","session":{session},"owner":{owner},"principal":{principal},"#,
                r#""state":"{state}","src":{src},"foreground":{foreground},"key":{key},"started_ns":{started},"#,
                r#""finished_ns":{finished},"result_ref":{result_ref},"result_uri":{result_uri},"error":{error},"#,
                r#""exit_code":{exit_code},"deadline_ms":{deadline},"deadline_exceeded":{exceeded},"#,
                r#""stdout_bytes":{stdout},"stderr_bytes":{stderr},"held_by":{held_by},"receipt":{receipt},"#,
                r#""controls":{{"cancel":{live},"suspend":{suspend},"resume":{resume},"#,
                r#""active_process_groups":{groups}}}{extra}}}"#
            ),
            id = reference,
            session = quoted(&self.session),
            owner = quoted(&self.owner),
            principal = quoted(&self.principal),
            state = self.state.name(),
            src = quoted(&self.src),
            foreground = self.foreground,
            key = self.key.as_deref().map_or("null".to_owned(), quoted),
            started = self.started_ns,
            finished = opt_int(self.finished_ns),
            exit_code = opt_int(self.exit_code),
            deadline = opt_int(self.deadline_ms),
            exceeded = self.deadline_exceeded,
            stdout = self.stdout_bytes,
            stderr = self.stderr_bytes,
            held_by = self.held_by,
            groups = if live { self.groups } else { 0 },
            result_ref = result_ref,
            result_uri = result_uri,
            error = error,
            live = live,
            suspend = suspend,
            resume = resume,
            extra = extra,
            receipt = self.receipt.as_ref().map_or("null".to_owned(), ReceiptRecord::to_json),
        )
    }

    /// Payload of the task's channel for its present state.
    pub(crate) fn event(&self) -> String {
        let counts = [
            ("stdout_bytes", tagged_int(i64::try_from(self.stdout_bytes).unwrap_or(i64::MAX))),
            ("stderr_bytes", tagged_int(i64::try_from(self.stderr_bytes).unwrap_or(i64::MAX))),
        ];
        let mut members = vec![("state", tagged_str(self.state.name()))];
        if self.state.is_terminal() {
            let result = self.result.map(|n| format!("out:{n}"));
            members.push(("ref", tagged_opt(result.as_deref())));
            members.push(("result_ref", tagged_opt(result.as_deref())));
        }
        members.extend(counts);
        tagged_record(&members)
    }
}

/// An RPC error object as JSON text.
pub(crate) fn error_json(error: &RpcError) -> String {
    // Strings, numbers and trees of them always encode.
    serde_json::to_string(error).unwrap_or_else(|_| r#"{"code":-32603,"message":"internal error"}"#.to_owned())
}

/// All records, by number.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    all: BTreeMap<u64, Task>,
}

impl Tasks {
    /// Takes a record in.
    pub(crate) fn insert(&mut self, task: Task) {
        self.all.insert(task.n, task);
    }

    /// A record of a session.
    pub(crate) fn of(&self, sid: Sid, n: u64) -> Option<&Task> {
        self.all.get(&n).filter(|task| task.sid == sid)
    }

    /// A record, to change it.
    pub(crate) fn at_mut(&mut self, n: u64) -> Option<&mut Task> {
        self.all.get_mut(&n)
    }

    /// A record.
    pub(crate) fn at(&self, n: u64) -> Option<&Task> {
        self.all.get(&n)
    }

    /// Forgets a record.
    pub(crate) fn remove(&mut self, n: u64) -> Option<Task> {
        self.all.remove(&n)
    }

    /// Records of a session, ascending.
    pub(crate) fn list(&self, sid: Sid) -> impl Iterator<Item = &Task> {
        self.all.values().filter(move |task| task.sid == sid)
    }

    /// Executions that are not over, in the whole kernel.
    pub(crate) fn running(&self) -> usize {
        self.all.values().filter(|task| !task.state.is_terminal()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> Task {
        let origin = Origin {
            sid: Sid(1),
            session: "default".into(),
            owner: "uid:1000".into(),
            principal: "uid:1000".into(),
            src: "make".into(),
            key: None,
            deadline_ms: None,
        };
        Task::new(11, origin, 5)
    }

    fn value(ok: bool, signaled: bool) -> TaskEnd {
        TaskEnd::Value { out: 8, ok, signaled, exit_code: None }
    }

    #[test]
    fn the_end_of_a_run_decides_the_state() {
        let ends = |end: TaskEnd, cancel: bool| {
            let mut task = task();
            task.cancel_requested = cancel;
            task.end(end, 9);
            task.state
        };
        let raised = || TaskEnd::Error(RpcError::new(shoal_wire::Code::Raised, "no"));
        assert_eq!(ends(value(true, false), false), TaskState::Completed);
        assert_eq!(ends(value(true, false), true), TaskState::Completed);
        assert_eq!(ends(value(false, false), false), TaskState::Failed);
        assert_eq!(ends(value(false, false), true), TaskState::Failed);
        assert_eq!(ends(value(false, true), true), TaskState::Cancelled);
        assert_eq!(ends(raised(), false), TaskState::Failed);
        assert_eq!(ends(raised(), true), TaskState::Cancelled);
        assert_eq!(ends(TaskEnd::Error(RpcError::worker_lost("s", None, false, "x")), true), TaskState::Failed);
        let ended = RpcError::session_ended("s", "o", "killed", None, None);
        assert_eq!(ends(TaskEnd::Error(ended), false), TaskState::Cancelled);
    }

    #[test]
    fn a_second_ladder_adds_to_the_receipt_of_the_first() {
        let receipt = |ended: &[i32], survived: &[i32], escalated| ReceiptRecord {
            ended: ended.to_vec(),
            survived: survived.to_vec(),
            escalated: Some(escalated),
        };
        let both = receipt(&[8], &[], "int").after(receipt(&[7], &[8, 9], "kill"));
        assert_eq!(both, receipt(&[7, 8, 9], &[], "kill"));
        assert_eq!(receipt(&[], &[9], "term").after(receipt(&[], &[9], "int")), receipt(&[], &[9], "term"));
    }

    #[test]
    fn records_are_json_with_every_member() {
        let mut task = task();
        task.end(value(true, false), 9);
        let json: serde_json::Value = serde_json::from_str(&task.to_json(r#","timed_out":false"#)).expect("valid");
        assert_eq!(json["id"], "task:11");
        assert_eq!(json["result_uri"], "shoal://out/8");
        assert_eq!(json["timed_out"], false);
        assert_eq!(json.as_object().expect("object").len(), 23);
        let event: serde_json::Value = serde_json::from_str(&task.event()).expect("valid");
        assert_eq!(event["v"]["result_ref"]["v"], "out:8");
    }
}
