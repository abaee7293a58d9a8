//! The life of an execution between broker and worker: prepare, judge, record, run, finish, record, answer.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use shoal_journal::{Closing, Ended, Kind, NewRow, PlanRecord, Row};
use shoal_leash::{Effect, Grant, Verdict, judge};
use shoal_proto::broker_worker::{Cancel, Prepare, Prepared, Purpose, Run as RunMessage, ToWorker};
use shoal_proto::launcher_worker::Rung;
use shoal_proto::{Bytes, Text};
use shoal_wire::error::Reason;
use shoal_wire::{Code, RpcError};

use crate::answer::RunOrder;
use crate::broker::Broker;
use crate::json::wire_path;
use crate::launcher_edge::{LauncherDone, rung_name};
use crate::record::Closed;
use crate::runs::{Began, Run, Stage};
use crate::sessions::Sid;
use crate::tasks::{Origin, ReceiptRecord, Task, TaskEnd, TaskState};

/// The receipt of a ladder belongs into the answer; it takes three rungs of two seconds at most.
const RECEIPT_WITHIN: Duration = Duration::from_secs(7);

/// What a worker claims about a source.
#[derive(Debug, Deserialize)]
pub(crate) struct Claim {
    /// Why it does not parse.
    pub(crate) parse_error: Option<ParseError>,
    /// Why nothing of it could be looked at: the worker had no thread for it.
    no_thread: Option<String>,
    /// What is claimed does not fit into a message.
    #[serde(default)]
    too_large: bool,
    /// The worker made a mistake of its own while it looked.
    #[serde(default)]
    broke_down: bool,
    /// Derived effects.
    #[serde(default)]
    pub(crate) effects: Vec<Effect>,
    /// Programs its commands resolve to.
    #[serde(default)]
    pub(crate) programs: Value,
    /// Files that interpreters are given.
    #[serde(default)]
    pub(crate) scripts: Value,
    /// Session names it reaches.
    pub(crate) bindings: Option<Value>,
    /// Syntax tree.
    #[serde(default)]
    pub(crate) ast: Value,
}

/// A source that does not parse.
#[derive(Debug, Deserialize)]
pub(crate) struct ParseError {
    message: String,
    span: Span,
    hint: Option<String>,
    #[serde(default)]
    incomplete: bool,
}

#[derive(Debug, Deserialize)]
struct Span {
    start: u64,
    end: u64,
}

impl Claim {
    /// Why the source cannot be run or planned, as a client is told.
    pub(crate) fn refusal(&self) -> Option<RpcError> {
        let no_thread = |why: &String| {
            let message = format!("the session has as many processes as it may: no thread for this execution ({why})");
            RpcError::new(Code::QuotaExceeded, message)
                .and("limit", "pids")
                .and("hint", "end programs of this session, e.g. by shoal_cancel or shoal_pty_close, then try again")
        };
        let too_large = || {
            let message = "the source, as it is looked at before it runs, does not fit into a message";
            RpcError::invalid("src", Reason::TooLarge, message)
                .and("hint", "make it shorter; data that a program needs is read from a file")
        };
        let broke_down = || RpcError::internal("the evaluator broke down over this source; please report it");
        let parse_error = self.parse_error.as_ref().map(ParseError::to_rpc);
        parse_error
            .or_else(|| self.no_thread.as_ref().map(no_thread))
            .or_else(|| self.too_large.then(too_large))
            .or_else(|| self.broke_down.then(broke_down))
    }
}

impl ParseError {
    /// The error a client gets.
    fn to_rpc(&self) -> RpcError {
        let Span { start, end } = self.span;
        RpcError::source(self.message.as_str(), start, end, self.hint.as_deref(), self.incomplete)
    }
}

impl Broker {
    /// Takes an execution in; it is prepared by [`Broker::prepare_run`].
    pub(crate) fn start_run(&mut self, order: RunOrder, foreground: bool) -> u64 {
        let n = self.take_task_number();
        let Some(session) = self.sessions.at_mut(order.sid) else { return n };
        session.running.push(n);
        if let Some((key, body)) = &order.key {
            session.keys.begin(key, *body, n);
        }
        let origin = Origin {
            sid: order.sid,
            session: session.name.clone(),
            owner: session.owner.clone(),
            principal: order.principal.clone(),
            src: order.src.clone(),
            key: order.key.as_ref().map(|(key, _)| key.clone()),
            deadline_ms: order.deadline_ms,
        };
        let mut task = Task::new(n, origin, self.now.ns);
        task.foreground = foreground;
        self.tasks.insert(task);
        self.runs.insert(Run::new(n, order));
        n
    }

    /// Takes in an execution that went on without a broker: its row is open, its worker evaluates it.
    pub(crate) fn adopt_running(&mut self, n: u64, order: RunOrder, row: &Row, suspended: bool) {
        let now = self.now.mono;
        let origin = Origin {
            sid: order.sid,
            session: row.session.as_str().into(),
            owner: row.owner.as_str().into(),
            principal: order.principal.clone(),
            src: order.src.clone(),
            key: row.key.clone(),
            deadline_ms: order.deadline_ms,
        };
        let mut task = Task::new(n, origin, row.ts);
        if suspended {
            task.state = TaskState::Suspended;
        }
        self.tasks.insert(task);
        let mut run = Run::new(n, order);
        run.stage = Stage::Running { since: now };
        run.entry = Some(row.id);
        run.began = Began::by_row(row.ts, self.now.ns, now);
        run.effects = row.effects.clone();
        let gone_by = Duration::from_nanos(u64::try_from(run.began.elapsed_ns(now)).unwrap_or(0));
        self.runs.insert(run);
        self.arm_deadline(n, gone_by);
    }

    /// Sends the source to the worker, once there is one.
    pub(crate) fn prepare_run(&mut self, n: u64) {
        let Some(sid) = self.runs.at(n).map(|run| run.sid) else { return };
        self.when_up(sid, move |broker, up| {
            if let Err(error) = up {
                return broker.refuse_run(n, error);
            }
            let last_out = broker.sessions.at(sid).map_or(0, |session| session.last_out);
            let Some(run) = broker.runs.at_mut(n) else { return };
            run.asked_after = last_out;
            let src = Text::new(&*run.src);
            let Ok(src) = src else {
                return broker.refuse_run(n, RpcError::internal("the source does not fit into a message"));
            };
            let prepare = Prepare {
                run: n,
                src,
                position: run.position,
                deadline_ms: run.deadline_ms.and_then(|ms| u64::try_from(ms).ok()),
                elide: run.elide,
                tty: run.tty,
                human: run.human,
                bindings: Bytes::default(),
                purpose: if run.plan.is_some() { Purpose::Apply } else { Purpose::Run },
            };
            broker.tell_worker(sid, ToWorker::Prepare(prepare));
        });
    }

    /// A worker's claim: judged here, under the owner's rules.
    pub(crate) fn on_prepared(&mut self, sid: Sid, prepared: Prepared) -> Result<(), &'static str> {
        let claim: Claim = serde_json::from_slice(prepared.claim.as_slice()).map_err(|_| "a claim of another shape")?;
        if self.planning.contains_key(&prepared.run) {
            self.on_planned(sid, prepared.run, claim);
            return Ok(());
        }
        let Some(run) = self.runs.of(sid, prepared.run) else { return Ok(()) };
        if run.stage != Stage::AwaitClaim {
            return Err("a second claim");
        }
        let n = run.n;
        if let Some(error) = claim.refusal() {
            self.refuse_run(n, error);
            return Ok(());
        }
        run.effects = serde_json::to_value(&claim.effects).unwrap_or_default();
        match run.plan.clone() {
            Some(plan) => self.apply_plan(n, &plan, &claim),
            None => self.judge_run(n, &claim.effects),
        }
        Ok(())
    }

    fn judge_run(&mut self, n: u64, effects: &[Effect]) {
        let Some(section) = self.runs.at(n).and_then(|run| self.sessions.at(run.sid)) else { return };
        let judged = judge(effects, self.policy.of_session(section));
        let verdict = judged.verdict;
        let hint = judged.hint().map(str::to_owned);
        match judged.allowed() {
            Ok(grant) => self.record_run(n, grant, None),
            Err(_) => self.deny_run(n, verdict, hint),
        }
    }

    fn deny_run(&mut self, n: u64, verdict: Verdict, hint: Option<String>) {
        let effects = self.runs.at(n).map(|run| run.effects.clone()).unwrap_or_default();
        let error = match verdict {
            Verdict::ApprovalRequired => RpcError::approval_required(effects),
            Verdict::Allow | Verdict::Deny => denied(effects, hint.as_deref()),
        };
        self.refuse_run(n, error);
    }

    /// Commits the row; only then the worker runs. `consume` is the plan to consume in the same transaction.
    pub(crate) fn record_run(&mut self, n: u64, grant: Grant, consume: Option<PlanRecord>) {
        if let Err(error) = self.check_journal() {
            return self.refuse_run(n, error);
        }
        let Some(row) = self.run_row(n) else { return };
        if let Some(run) = self.runs.at_mut(n) {
            run.stage = Stage::AwaitRow;
            run.began = Began::at(self.now.mono);
        }
        let reference = consume.as_ref().map(|plan| plan.plan_ref.clone()).unwrap_or_default();
        self.begin(
            move |store| {
                let Some(plan) = &consume else { return store.open_row(&row).map(Some) };
                if !store.move_plan(&plan.plan_ref, &plan.state, "consumed")? {
                    return Ok(None);
                }
                let entry = store.open_row(&row)?;
                let mut consumed = PlanRecord { state: "consumed".to_owned(), ..plan.clone() };
                consumed.body["entry"] = entry.into();
                store.put_plan(&consumed)?;
                Ok(Some(entry))
            },
            move |broker, written| match written {
                Ok(Some(entry)) => broker.begin_run(n, entry, &grant),
                Ok(None) => broker.refuse_run(n, broker.plan_refusal(&reference)),
                Err(error) => {
                    let refusal = broker.journal_refusal(&error.to_string());
                    broker.refuse_run(n, refusal);
                }
            },
        );
    }

    fn run_row(&self, n: u64) -> Option<NewRow> {
        let run = self.runs.at(n)?;
        let detail = run.plan.as_ref().map(|plan| json!({"plan_ref": &**plan}));
        let mut row = self.plain_row(Kind::Exec, Some(run.sid), &run.principal, Value::Null);
        row.detail = detail;
        row.src = run.src.to_string();
        row.effects = run.effects.clone();
        row.key = run.key.clone();
        row.run = i64::try_from(n).ok();
        Some(row)
    }

    /// Starts what was judged and recorded: there is no other way to `Run`.
    fn begin_run(&mut self, n: u64, entry: i64, _grant: &Grant) {
        let now = self.now.mono;
        let Some(run) = self.runs.at_mut(n) else { return };
        run.entry = Some(entry);
        run.stage = Stage::Running { since: now };
        let (sid, key) = (run.sid, run.key.clone());
        let (plan, aborted) = (run.plan.clone(), run.aborted.take());
        if let Some(plan) = plan {
            self.plan_consumed(&plan, entry);
        }
        if let Some((error, ended)) = aborted {
            self.tell_worker(sid, ToWorker::Discard(RunMessage { run: n }));
            return self.abort_run(n, error.and("entry_id", entry), ended);
        }
        if let (Some((key, _)), Some(session)) = (key, self.sessions.at_mut(sid)) {
            session.keys.record(&key, entry);
        }
        self.tell_worker(sid, ToWorker::Run(RunMessage { run: n }));
        self.arm_deadline(n, Duration::ZERO);
        self.hand_over_started(n);
    }

    /// Cancels an execution that its worker does not evaluate yet, if it is one: there is nothing to climb a ladder for.
    pub(crate) fn cancel_unstarted(&mut self, n: u64, rung: Rung) -> bool {
        let Some(run) = self.runs.at(n).filter(|run| matches!(run.stage, Stage::AwaitClaim | Stage::AwaitRow)) else {
            return false;
        };
        let sid = run.sid;
        let cwd = self.sessions.at(sid).map_or_else(|| "null".to_owned(), |session| wire_path(&session.cwd));
        // There is no process of it.
        let receipt = ReceiptRecord { escalated: Some(rung_name(rung)), ..ReceiptRecord::default() };
        let data = json!({
            "code": "cancelled", "span": null, "hint": null, "status": null, "stderr": null, "ref": null, "uri": null,
            "elapsed_ms": 0, "cwd": serde_json::from_str::<Value>(&cwd).unwrap_or_default(),
            "receipt": serde_json::from_str::<Value>(&receipt.to_json()).unwrap_or_default(),
        });
        if let Some(task) = self.tasks.at_mut(n) {
            task.receipt = Some(receipt);
        }
        // What the worker derives meanwhile ends as well.
        self.tell_worker(sid, ToWorker::Cancel(Cancel { run: n, rung, deadline: false }));
        self.abort_run(n, RpcError::new(Code::Raised, "cancelled before it began").with(data), Ended::Cancelled);
        true
    }

    /// Ends a run when its deadline is over, of which so much has gone by.
    fn arm_deadline(&mut self, n: u64, gone_by: Duration) {
        let Some(ms) = self.runs.at(n).and_then(|run| u64::try_from(run.deadline_ms?).ok()) else { return };
        let left = Duration::from_millis(ms).saturating_sub(gone_by);
        let timer = self.after(left, move |broker| broker.on_deadline(n));
        if let Some(run) = self.runs.at_mut(n) {
            run.deadline = Some(timer);
        }
    }

    fn on_deadline(&mut self, n: u64) {
        let Some(run) = self.runs.at_mut(n) else { return };
        let sid = run.sid;
        if let Some(task) = self.tasks.at_mut(n) {
            task.deadline_exceeded = true;
        }
        self.end_run(sid, n, Rung::Int, true, |_, _| {});
    }

    /// Tells the worker and climbs the ladder; the receipt goes into the record, then `then` runs.
    pub(crate) fn end_run(
        &mut self,
        sid: Sid,
        n: u64,
        rung: Rung,
        deadline: bool,
        then: impl FnOnce(&mut Self, bool) + 'static,
    ) {
        self.tell_worker(sid, ToWorker::Cancel(Cancel { run: n, rung, deadline }));
        if let Some(run) = self.runs.at_mut(n) {
            run.ladder = true;
        }
        self.after(RECEIPT_WITHIN, move |broker| broker.ladder_over(n));
        self.climb(sid, n, rung, move |broker, done| {
            let receipt = match done {
                Ok(LauncherDone::Receipt(receipt)) => Some(receipt),
                Ok(_) | Err(_) => None,
            };
            let verified = receipt.is_some();
            if let (Some(receipt), Some(task)) = (receipt, broker.tasks.at_mut(n)) {
                task.receipt = Some(match task.receipt.take() {
                    Some(earlier) => receipt.after(earlier),
                    None => receipt,
                });
            }
            broker.ladder_over(n);
            then(broker, verified);
        });
    }

    fn ladder_over(&mut self, n: u64) {
        if let Some(run) = self.runs.at_mut(n) {
            run.ladder = false;
        }
        self.finish_if_complete(n);
    }

    /// An execution that never started: its key is unused and it leaves no record.
    pub(crate) fn refuse_run(&mut self, n: u64, error: RpcError) {
        let Some(run) = self.runs.remove(n) else { return };
        if let Some(session) = self.sessions.at_mut(run.sid) {
            session.running.retain(|running| *running != n);
            if let Some((key, _)) = &run.key {
                session.keys.forget(key);
            }
        }
        self.tell_worker(run.sid, ToWorker::Discard(RunMessage { run: n }));
        let denial = error.is(Code::LeashDenied) || error.is(Code::ApprovalRequired);
        for waiter in run.waiters {
            if let Some(timer) = waiter.timer {
                self.disarm(timer);
            }
            match denial {
                true => self.reply_denial(waiter.ask, error.clone(), &run.src, run.effects.clone()),
                false => self.send_answer(waiter.ask, &Err(error.clone())),
            }
        }
        let announced = self.tasks.at(n).is_some_and(|task| task.announced);
        if announced || self.is_awaited(n) {
            // A client holds its reference already: it learns the refusal there.
            let now = self.now.ns;
            if let Some(task) = self.tasks.at_mut(n) {
                task.end(TaskEnd::Error(error), now);
            }
            self.task_over(n);
        } else {
            self.tasks.remove(n);
        }
    }

    /// An execution whose worker or session is gone.
    pub(crate) fn abort_run(&mut self, n: u64, error: RpcError, ended: Ended) {
        let Some(run) = self.runs.at_mut(n) else { return };
        if run.stage == Stage::AwaitRow {
            // The row is on its way: it has to be closed as well.
            run.aborted = Some((error, ended));
            return;
        }
        let Some(entry) = run.entry else { return self.refuse_run(n, error) };
        if run.stage == Stage::AwaitClose {
            // Its end is on the way into the journal and will be answered.
            return;
        }
        run.stage = Stage::AwaitClose;
        run.finished = None;
        let (sid, began, run_key) = (run.sid, run.began, run.key.is_some());
        let statements = std::mem::take(&mut run.statements);
        if let Some(timer) = run.deadline.take() {
            self.disarm(timer);
        }
        let task = self.tasks.at(n);
        let owner = task.map_or_else(String::new, |task| task.owner.to_string());
        let session = task.map_or_else(String::new, |task| task.session.to_string());
        let dur_ns = began.elapsed_ns(self.now.mono);
        let keyed = run_key.then(|| json!({"answer": {"error": error}}));
        let closing = Closing { dur_ns, ended: Some(ended), summary: keyed, ..Closing::default() };
        let closed = Closed { owner, session, closing, attached: Vec::new(), statements, transcript: false };
        if let Some(session) = self.sessions.at_mut(sid) {
            session.running.retain(|running| *running != n);
        }
        self.close(entry, closed, move |broker, recorded| {
            let answer = Err(error.clone());
            broker.run_over(n, None, &answer, TaskEnd::Error(error), recorded);
        });
    }
}

/// -32010 for effects the policy does not grant.
pub(crate) fn denied(effects: Value, hint: Option<&str>) -> RpcError {
    let error = RpcError::denied("policy", "leash denied execution").and("effects", effects);
    match hint {
        Some(hint) => error.and("hint", hint),
        None => error,
    }
}
