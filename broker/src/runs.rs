//! Executions that are not over: who waits for each, and how far it is.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;
use shoal_journal::{Ended, NewRow, Output};
use shoal_proto::broker_worker::{Elide, Finished, Position};
use shoal_wire::RpcError;

use crate::answer::RunOrder;
use crate::capture::Allowance;
use crate::clients::{Ask, ConnId};
use crate::sessions::Sid;
use crate::timers::TimerId;

/// How far an execution is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its session is not up yet, or its worker parses it.
    AwaitClaim,
    /// Its row is being written.
    AwaitRow,
    /// It is evaluated, since this time.
    Running {
        /// On the monotonic clock.
        since: Duration,
    },
    /// Its row is being closed.
    AwaitClose,
}

/// What a waiting client is told when it does not wait any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// It waits for the end.
    UntilEnd,
    /// It wants the task at once.
    Task,
    /// It gave a timeout of zero: the task at once, and said to be one of time.
    NoTime,
    /// It wants the task when its time is over.
    Timeout,
}

/// When an execution was recorded, to tell how long it took: a step of the wall clock takes no time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Began {
    /// On the monotonic clock of this broker.
    at: Duration,
    /// What went by before it, under an earlier broker.
    before: Duration,
}

impl Began {
    /// At this moment of the monotonic clock.
    pub(crate) fn at(now: Duration) -> Self {
        Self { at: now, before: Duration::ZERO }
    }

    /// By a row of an earlier broker, whose monotonic clock is gone: the wall clock is all there is.
    pub(crate) fn by_row(ts: i64, now_ns: i64, now: Duration) -> Self {
        let before = u64::try_from(now_ns.saturating_sub(ts)).unwrap_or(0);
        Self { at: now, before: Duration::from_nanos(before) }
    }

    /// How long ago that is, in ns.
    pub(crate) fn elapsed_ns(self, now: Duration) -> i64 {
        let elapsed = now.saturating_sub(self.at).saturating_add(self.before);
        i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX)
    }
}

/// A client that waits for an execution.
#[derive(Debug)]
pub(crate) struct Waiter {
    /// Its number.
    pub(crate) id: u64,
    /// Its request.
    pub(crate) ask: Ask,
    /// It repeated a key: the answer says so.
    pub(crate) replayed: bool,
    /// How long it waits.
    pub(crate) patience: Patience,
    /// Ends its patience.
    pub(crate) timer: Option<TimerId>,
}

/// An execution.
#[derive(Debug)]
pub(crate) struct Run {
    /// Its number, also that of its task.
    pub(crate) n: u64,
    /// Its session.
    pub(crate) sid: Sid,
    /// Who asked.
    pub(crate) principal: Rc<str>,
    /// The source.
    pub(crate) src: Rc<str>,
    /// Position of the last statement.
    pub(crate) position: Position,
    /// Kill it this long after its start.
    pub(crate) deadline_ms: Option<i64>,
    /// Idempotency key and the hash of its body.
    pub(crate) key: Option<(String, [u8; 32])>,
    /// Bounds of the answer.
    pub(crate) elide: Elide,
    /// Keep colours.
    pub(crate) tty: bool,
    /// The human asked.
    pub(crate) human: bool,
    /// The plan it applies.
    pub(crate) plan: Option<Rc<str>>,
    /// The last `out:N` of its session when its claim was asked for.
    pub(crate) asked_after: u64,
    /// Its worker died before it began, so the next one was asked; that happens once.
    pub(crate) asked_again: bool,
    /// Effects as claimed and judged.
    pub(crate) effects: Value,
    /// How far it is.
    pub(crate) stage: Stage,
    /// Its row.
    pub(crate) entry: Option<i64>,
    /// Since when it is recorded.
    pub(crate) began: Began,
    /// Who waits.
    pub(crate) waiters: Vec<Waiter>,
    /// Ends it.
    pub(crate) deadline: Option<TimerId>,
    /// Bytes of its source that no statement's row has.
    pub(crate) untold: usize,
    /// Rows of its statements, written when it is closed.
    pub(crate) statements: Vec<(NewRow, shoal_journal::Closing)>,
    /// Captures stored while it ran.
    pub(crate) captured: Vec<Output>,
    /// What its captures may keep, once there is one.
    pub(crate) kept_output: Option<Allowance>,
    /// Up-calls that are not answered.
    pub(crate) up_calls: usize,
    /// A ladder is climbed: its receipt belongs into the answer.
    pub(crate) ladder: bool,
    /// It has to end as soon as its row is there: why, and how the row closes.
    pub(crate) aborted: Option<(RpcError, Ended)>,
    /// Its end, while the receipt is outstanding.
    pub(crate) finished: Option<(Finished, VecDeque<OwnedFd>)>,
}

impl Run {
    /// An execution that waits for its worker's claim.
    pub(crate) fn new(n: u64, order: RunOrder) -> Self {
        Self {
            n,
            sid: order.sid,
            principal: order.principal,
            untold: order.src.len(),
            src: order.src,
            position: order.position,
            deadline_ms: order.deadline_ms,
            key: order.key,
            elide: order.elide,
            tty: order.tty,
            human: order.human,
            plan: order.plan,
            asked_after: 0,
            asked_again: false,
            effects: Value::Array(Vec::new()),
            stage: Stage::AwaitClaim,
            entry: None,
            began: Began::default(),
            waiters: Vec::new(),
            deadline: None,
            statements: Vec::new(),
            captured: Vec::new(),
            kept_output: None,
            up_calls: 0,
            ladder: false,
            aborted: None,
            finished: None,
        }
    }
}

/// All of them, by number.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    all: BTreeMap<u64, Run>,
}

impl Runs {
    /// Takes one in.
    pub(crate) fn insert(&mut self, run: Run) {
        self.all.insert(run.n, run);
    }

    /// One of them.
    pub(crate) fn at(&self, n: u64) -> Option<&Run> {
        self.all.get(&n)
    }

    /// One of them, to change it.
    pub(crate) fn at_mut(&mut self, n: u64) -> Option<&mut Run> {
        self.all.get_mut(&n)
    }

    /// One that a worker names: it must be of that worker's session.
    pub(crate) fn of(&mut self, sid: Sid, n: u64) -> Option<&mut Run> {
        self.all.get_mut(&n).filter(|run| run.sid == sid)
    }

    /// It is over.
    pub(crate) fn remove(&mut self, n: u64) -> Option<Run> {
        self.all.remove(&n)
    }

    /// Numbers of those in a session.
    pub(crate) fn in_session(&self, sid: Sid) -> Vec<u64> {
        self.all.values().filter(|run| run.sid == sid).map(|run| run.n).collect()
    }

    /// Takes the waiters of a connection that is gone; the numbers of the runs nobody waits for any more.
    pub(crate) fn forget_connection(&mut self, conn: ConnId) -> Vec<u64> {
        let mut left = Vec::new();
        for run in self.all.values_mut() {
            let before = run.waiters.len();
            run.waiters.retain(|waiter| waiter.ask.conn != conn);
            if run.waiters.len() < before && run.waiters.is_empty() {
                left.push(run.n);
            }
        }
        left
    }
}

/// The answer of an execution: the members of its result without the closing brace, or its error.
pub(crate) type RunAnswer = Result<Rc<str>, RpcError>;

/// The answer for one waiter.
pub(crate) fn answer_for(answer: &RunAnswer, replayed: bool, recorded: bool) -> Result<String, RpcError> {
    match answer {
        Ok(members) => {
            let replayed = if replayed { r#","replayed":true"# } else { "" };
            let recorded = if recorded { "" } else { r#","recorded":false"# };
            Ok(format!("{members}{replayed}{recorded}}}"))
        }
        Err(error) => {
            let mut error = error.clone();
            if replayed {
                error = error.and("replayed", true);
            }
            if !recorded {
                error = error.and("recorded", false);
            }
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_it_took_is_never_less_than_nothing() {
        let second = Duration::from_secs(1);
        assert_eq!(Began::at(second).elapsed_ns(second * 3), 2_000_000_000);
        let adopted = Began::by_row(5, 1_000_000_005, second);
        assert_eq!(adopted.elapsed_ns(second * 2), 2_000_000_000);
        // The row is of a time that is still to come: the clock was set back meanwhile.
        assert_eq!(Began::by_row(i64::MAX, 0, second).elapsed_ns(second), 0);
    }

    #[test]
    fn answers_say_when_they_are_replayed_or_unrecorded() {
        let answer: RunAnswer = Ok(r#"{"ref":"out:1""#.into());
        assert_eq!(answer_for(&answer, false, true), Ok(r#"{"ref":"out:1"}"#.to_owned()));
        assert_eq!(
            answer_for(&answer, true, false),
            Ok(r#"{"ref":"out:1","replayed":true,"recorded":false}"#.to_owned())
        );
        let error = answer_for(&Err(RpcError::unknown_task("task:1")), true, true).expect_err("error");
        assert_eq!(error.data, Some(serde_json::json!({"task": "task:1", "replayed": true})));
    }
}
