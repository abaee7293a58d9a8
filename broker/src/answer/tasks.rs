//! Task methods: looking at executions, waiting for them, ending and pausing them.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::json;
use shoal_proto::broker_launcher::{RunOrder, ToLauncher};
use shoal_proto::broker_worker::{Method as WorkerMethod, Run as RunMessage, ToWorker};
use shoal_proto::launcher_worker::Rung;
use shoal_wire::params::Empty;
use shoal_wire::params::task::{LogStream, Signal, TaskAwait, TaskCancel, TaskOutput, TaskPick};
use shoal_wire::{Code, Ref, RpcError, params};

use super::Params;
use crate::broker::{Broker, or_refuse};
use crate::clients::{Ask, Attachment, ConnId};
use crate::launcher_edge::LauncherDone;
use crate::sessions::Sid;
use crate::tasks::{ReceiptRecord, Task, TaskState};
use crate::timers::TimerId;

/// A cancel answers after this at the latest.
const CANCEL_WITHIN: Duration = Duration::from_secs(6);
/// Once its processes are gone a run may take this long to end, before it is called hung.
const UNWIND_WITHIN: Duration = Duration::from_secs(1);

/// What somebody who waits for a task is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// The record, with whether the wait ran out.
    Record,
    /// The receipt of a cancel.
    Receipt,
}

/// Somebody who waits for the end of a task.
#[derive(Debug)]
pub(crate) struct TaskWaiter {
    id: u64,
    n: u64,
    ask: Ask,
    told: Told,
    timer: Option<TimerId>,
}

impl Broker {
    fn task_number(&self, caller: &Attachment, text: &str) -> Result<u64, RpcError> {
        match Ref::parse(text) {
            Some(Ref::Task(n)) if self.tasks.of(caller.sid, n).is_some() => Ok(n),
            _ => Err(RpcError::unknown_task(text)),
        }
    }

    /// `task.list`.
    pub(super) fn answer_task_list(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        or_refuse!(self, ask, params::decode::<Empty>(text));
        let sid = caller.sid;
        let is_live = self.tasks.list(sid).any(|task| !task.state.is_terminal());
        self.with_groups(sid, is_live, move |broker| {
            let records: Vec<String> = broker.tasks.list(sid).map(|task| task.to_json("")).collect();
            broker.reply(ask, Ok(format!("[{}]", records.join(","))));
        });
    }

    /// `task.get`.
    pub(super) fn answer_task_get(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let pick = or_refuse!(self, ask, params::decode::<TaskPick>(text));
        let n = or_refuse!(self, ask, self.task_number(caller, &pick.task));
        let is_live = self.tasks.at(n).is_some_and(|task| !task.state.is_terminal());
        self.with_groups(caller.sid, is_live, move |broker| {
            let record = broker.task_record(n, "");
            broker.reply(ask, record);
        });
    }

    /// Goes on once the process groups of a session's runs are counted, if any run is live: the launcher knows them. A
    /// launcher that does not say leaves the last count.
    fn with_groups(&mut self, sid: Sid, is_live: bool, then: impl FnOnce(&mut Self) + 'static) {
        if !is_live {
            return then(self);
        }
        let make = |call| ToLauncher::List(RunOrder { call, run: 0 });
        self.ask_launcher(sid, make, move |broker, done| {
            if let Ok(LauncherDone::Listed(listing)) = done {
                let mut groups: HashMap<u64, usize> = HashMap::new();
                for running in listing.running.as_slice().iter().filter(|running| running.pty == 0) {
                    *groups.entry(running.run).or_default() += 1;
                }
                let runs: Vec<u64> = broker.tasks.list(sid).map(|task| task.n).collect();
                for n in runs {
                    if let Some(task) = broker.tasks.at_mut(n) {
                        task.groups = groups.get(&n).copied().unwrap_or(0);
                    }
                }
            }
            then(broker);
        });
    }

    fn task_record(&self, n: u64, extra: &str) -> Result<String, RpcError> {
        self.tasks.at(n).map(|task| task.to_json(extra)).ok_or_else(|| RpcError::unknown_task(&format!("task:{n}")))
    }

    /// `task.await`.
    pub(super) fn answer_task_await(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<TaskAwait>(text));
        let n = or_refuse!(self, ask, self.task_number(caller, &wanted.task));
        if self.tasks.at(n).is_some_and(|task| task.state.is_terminal()) {
            let record = self.task_record(n, r#","timed_out":false"#);
            return self.reply(ask, record);
        }
        let limit = wanted.timeout_ms.map(|ms| Duration::from_millis(ms.unsigned()));
        self.wait_for_task(n, ask, Told::Record, limit);
    }

    fn wait_for_task(&mut self, n: u64, ask: Ask, told: Told, limit: Option<Duration>) {
        let id = self.fresh();
        let timer = limit.map(|limit| self.after(limit, move |broker| broker.task_wait_over(id)));
        self.task_waiters.push(TaskWaiter { id, n, ask, told, timer });
    }

    fn task_wait_over(&mut self, id: u64) {
        if let Some(at) = self.task_waiters.iter().position(|waiter| waiter.id == id) {
            let waiter = self.task_waiters.swap_remove(at);
            self.tell_task_waiter(waiter, true);
        }
    }

    /// Whether somebody waits for the end of a task.
    pub(crate) fn is_awaited(&self, n: u64) -> bool {
        self.task_waiters.iter().any(|waiter| waiter.n == n)
    }

    /// A task ended: everybody who waits for it is told.
    pub(crate) fn wake_task_waiters(&mut self, n: u64) {
        let mine: Vec<TaskWaiter> = self.task_waiters.extract_if(.., |waiter| waiter.n == n).collect();
        for waiter in mine {
            self.tell_task_waiter(waiter, false);
        }
    }

    /// A connection is gone: it waits for nothing any more.
    pub(super) fn forget_task_waiters(&mut self, conn: ConnId) {
        let gone: Vec<TaskWaiter> = self.task_waiters.extract_if(.., |waiter| waiter.ask.conn == conn).collect();
        gone.into_iter().filter_map(|waiter| waiter.timer).for_each(|timer| self.disarm(timer));
    }

    fn tell_task_waiter(&mut self, waiter: TaskWaiter, timed_out: bool) {
        if let Some(timer) = waiter.timer {
            self.disarm(timer);
        }
        let n = waiter.n;
        let answer = match waiter.told {
            Told::Record => self.task_record(n, &format!(r#","timed_out":{timed_out}"#)),
            Told::Receipt => self.tasks.at(n).map(|task| cancel_json(task, false)).ok_or_else(|| gone(n)),
        };
        self.reply(waiter.ask, answer);
    }

    /// `task.output`, answered by the worker that keeps the log.
    pub(super) fn answer_task_output(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<TaskOutput>(text));
        let n = or_refuse!(self, ask, self.task_number(caller, &wanted.task));
        let stream = match wanted.stream {
            LogStream::Stdout => "stdout",
            LogStream::Stderr => "stderr",
            LogStream::Both => "both",
        };
        let asked = json!({"run": n, "task": format!("task:{n}"), "stream": stream, "offset": wanted.offset, "max": wanted.max.value()});
        self.ask_worker(caller.sid, WorkerMethod::TaskOutput, asked.to_string(), move |broker, answer| {
            let counted = broker.tasks.at(n).filter(|task| task.state.is_terminal()).map(lost_log);
            let answer = match (answer, counted) {
                (Err(error), Some(counted)) if error.is(Code::UnknownTask) => Ok(counted),
                (answer, _) => answer,
            };
            broker.reply(ask, answer);
        });
    }

    /// `task.cancel`: the launcher ends the processes, so a hung worker is no obstacle.
    pub(super) fn answer_task_cancel(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<TaskCancel>(text));
        let n = or_refuse!(self, ask, self.task_number(caller, &wanted.task));
        let over = self.tasks.at(n).filter(|task| task.state.is_terminal()).map(|task| cancel_json(task, true));
        if let Some(answer) = over {
            return self.reply(ask, Ok(answer));
        }
        let rung = match wanted.signal {
            Signal::Int => Rung::Int,
            Signal::Term => Rung::Term,
            Signal::Kill => Rung::Kill,
        };
        let sid = self.runs.at(n).map_or(caller.sid, |run| run.sid);
        self.cancelling(n);
        self.wait_for_task(n, ask, Told::Receipt, Some(CANCEL_WITHIN));
        let waiter = self.task_waiters.last().map_or(0, |waiter| waiter.id);
        if self.cancel_unstarted(n, rung) {
            return;
        }
        self.end_run(sid, n, rung, false, move |broker, verified| {
            if verified {
                broker.after(UNWIND_WITHIN, move |broker| broker.task_wait_over(waiter));
            }
        });
    }

    /// `task.suspend` and `task.resume`.
    pub(super) fn answer_task_pause(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>, stop: bool) {
        let pick = or_refuse!(self, ask, params::decode::<TaskPick>(text));
        let n = or_refuse!(self, ask, self.task_number(caller, &pick.task));
        let wanted = if stop { TaskState::Running } else { TaskState::Suspended };
        let state = self.tasks.at(n).map_or(TaskState::Completed, |task| task.state);
        if state != wanted {
            return self.reply(ask, Err(RpcError::task_control(&format!("task:{n}"), state.name())));
        }
        let sid = self.runs.at(n).map_or(caller.sid, |run| run.sid);
        let message = RunMessage { run: n };
        self.tell_worker(sid, if stop { ToWorker::Freeze(message) } else { ToWorker::Thaw(message) });
        self.pause(sid, n, stop, move |broker, done| {
            if let Err(error) = done {
                return broker.reply(ask, Err(error));
            }
            let next = if stop { TaskState::Suspended } else { TaskState::Running };
            if let Some(task) = broker.tasks.at_mut(n).filter(|task| task.state == wanted) {
                task.state = next;
            }
            broker.task_event(n);
            let record = broker.task_record(n, "");
            broker.reply(ask, record);
        });
    }
}

/// What is left of the log of a run whose worker is gone: how much there was.
fn lost_log(task: &Task) -> String {
    let seen = task.stdout_bytes.saturating_add(task.stderr_bytes);
    json!({"task": task.reference(), "chunks": [], "next_offset": seen, "eof": true, "total_seen": seen,
        "kept_from": seen, "lossy": seen > 0})
    .to_string()
}

fn gone(n: u64) -> RpcError {
    RpcError::unknown_task(&format!("task:{n}"))
}

fn cancel_json(task: &Task, already_ended: bool) -> String {
    format!(
        r#"{{"task":"{}","cancel_requested":true,"already_ended":{already_ended},"state":"{}","receipt":{}}}"#,
        task.reference(),
        task.state.name(),
        task.receipt.as_ref().map_or("null".to_owned(), ReceiptRecord::to_json),
    )
}
