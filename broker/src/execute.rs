//! The life of an execution between broker and worker: prepare, judge, record, run, finish, record, answer.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use shoal_journal::{Closing, Ended, Kind, NewRow, Output, OutputData, Row};
use shoal_leash::{Effect, Grant, Verdict, judge};
use shoal_proto::broker_worker::{Cancel, Ending, Finished, MAX_JSON, Prepare, Prepared, Run as RunMessage, ToWorker};
use shoal_proto::launcher_worker::Rung;
use shoal_proto::{Bytes, Text};
use shoal_wire::RpcError;

use crate::answer::RunOrder;
use crate::broker::Broker;
use crate::json::{quoted, relayable, wire_path};
use crate::launcher_edge::LauncherDone;
use crate::record::Closed;
use crate::runs::{Run, RunAnswer, Stage, answer_for};
use crate::sessions::Sid;
use crate::tasks::{Origin, Task, TaskEnd};

/// The receipt of a ladder belongs into the answer; it takes three rungs of two seconds at most.
const RECEIPT_WITHIN: Duration = Duration::from_secs(7);
/// Stored bytes of one output (`value`, `render`).
const MAX_OUTPUT: usize = 256 * 1024 * 1024;
/// The line a longer output ends with.
const TRUNCATED: &[u8] = b"\n[shoal: output truncated; see journal metadata]";

/// What a worker claims about a source.
#[derive(Debug, Deserialize)]
pub(crate) struct Claim {
    /// Why it does not parse.
    pub(crate) parse_error: Option<ParseError>,
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

impl ParseError {
    /// The error a client gets.
    pub(crate) fn to_rpc(&self) -> RpcError {
        let Span { start, end } = self.span;
        RpcError::source(self.message.as_str(), start, end, self.hint.as_deref(), self.incomplete)
    }
}

/// Members of a finished execution that concern its row and its task.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Detail {
    status: Option<i64>,
    ok: bool,
    signaled: bool,
    exit_code: Option<i64>,
    summary: Option<Value>,
    error: Option<Raised>,
    held_by: u64,
    changed: Vec<String>,
    stdout_bytes: Option<u64>,
    stderr_bytes: Option<u64>,
}

/// An error of the language.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Raised {
    code: String,
    message: String,
    span: Option<Value>,
    hint: Option<String>,
    status: Option<i64>,
    stderr: Option<String>,
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
    pub(crate) fn adopt_running(&mut self, n: u64, order: RunOrder, row: &Row) {
        let now = self.now.mono;
        let origin = Origin {
            sid: order.sid,
            session: row.session.as_str().into(),
            owner: row.owner.as_str().into(),
            principal: order.principal.clone(),
            src: order.src.clone(),
            key: row.key.clone(),
            deadline_ms: None,
        };
        self.tasks.insert(Task::new(n, origin, row.ts));
        let mut run = Run::new(n, order);
        run.stage = Stage::Running { since: now };
        run.entry = Some(row.id);
        run.ts = row.ts;
        run.effects = row.effects.clone();
        self.runs.insert(run);
    }

    /// Sends the source to the worker, once there is one.
    pub(crate) fn prepare_run(&mut self, n: u64) {
        let Some(sid) = self.runs.at(n).map(|run| run.sid) else { return };
        self.when_up(sid, move |broker, up| {
            if let Err(error) = up {
                return broker.refuse_run(n, error);
            }
            let Some(run) = broker.runs.at(n) else { return };
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
                // A worker that is asked for a plan's claim forgets the source.
                plan: run.plan.is_some() && !run.checked,
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
        if let Some(error) = &claim.parse_error {
            self.refuse_run(n, error.to_rpc());
            return Ok(());
        }
        run.effects = serde_json::to_value(&claim.effects).unwrap_or_default();
        let checked = run.checked;
        match run.plan.clone() {
            Some(plan) if checked => self.judge_plan(n, &plan, &claim.effects),
            Some(plan) => self.check_plan(n, &plan, &claim),
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

    /// Commits the row; only then the worker runs. `consume` is the plan to consume in the same transaction, and its state.
    pub(crate) fn record_run(&mut self, n: u64, grant: Grant, consume: Option<(String, String)>) {
        if let Err(error) = self.check_journal() {
            return self.refuse_run(n, error);
        }
        let Some(row) = self.run_row(n) else { return };
        if let Some(run) = self.runs.at_mut(n) {
            run.stage = Stage::AwaitRow;
            run.ts = row.ts;
        }
        self.write(
            move |store| {
                if let Some((plan, state)) = &consume
                    && !store.move_plan(plan, state, "consumed")?
                {
                    return Ok(None);
                }
                store.open_row(&row).map(Some)
            },
            move |broker, written| match written {
                Ok(Some(entry)) => broker.begin_run(n, entry, &grant),
                Ok(None) => broker.refuse_run(n, RpcError::unknown_plan("", "consumed")),
                Err(error) => broker.refuse_run(n, RpcError::journal_unavailable(error.to_string())),
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
        let Some(run) = self.runs.at_mut(n) else {
            // It was aborted while its row was written.
            return self.close_aborted(entry, n);
        };
        run.entry = Some(entry);
        run.stage = Stage::Running { since: now };
        let (sid, deadline, key) = (run.sid, run.deadline_ms, run.key.clone());
        if let (Some((key, _)), Some(session)) = (key, self.sessions.at_mut(sid)) {
            session.keys.record(&key, entry);
        }
        self.tell_worker(sid, ToWorker::Run(RunMessage { run: n }));
        if let Some(ms) = deadline.and_then(|ms| u64::try_from(ms).ok()) {
            let timer = self.after(Duration::from_millis(ms), move |broker| broker.on_deadline(n));
            if let Some(run) = self.runs.at_mut(n) {
                run.deadline = Some(timer);
            }
        }
        if let Some(plan) = self.runs.at(n).and_then(|run| run.plan.clone()) {
            self.plan_consumed(&plan, entry);
        }
        self.hand_over_started(n);
    }

    fn close_aborted(&mut self, entry: i64, n: u64) {
        let task = self.tasks.at(n);
        let owner = task.map_or_else(String::new, |task| task.owner.to_string());
        let session = task.map_or_else(String::new, |task| task.session.to_string());
        let closing = Closing { ended: Some(Ended::Cancelled), ..Closing::default() };
        let closed = Closed { owner, session, closing, statements: Vec::new(), transcript: false };
        self.close(entry, closed, |_, _| {});
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
                task.receipt = Some(receipt);
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

    /// The end of an execution. It is held back while its receipt or a capture is outstanding.
    pub(crate) fn on_finished(
        &mut self,
        sid: Sid,
        finished: Finished,
        fds: VecDeque<OwnedFd>,
    ) -> Result<(), &'static str> {
        let n = finished.run;
        // A run that was aborted meanwhile: its late end is dropped, and the worker may forget it.
        let Some(run) = self.runs.of(sid, n) else {
            self.tell_worker(sid, ToWorker::Ack(RunMessage { run: n }));
            return Ok(());
        };
        if !matches!(run.stage, Stage::Running { .. }) || run.finished.is_some() {
            return Err("an end of what does not run");
        }
        if run.up_calls > 0 {
            return Err("an end with up-calls open");
        }
        let attached = [finished.stdout, finished.stderr, finished.full].iter().filter(|set| **set).count();
        if attached != fds.len() {
            return Err("an end whose descriptors are not those it names");
        }
        let session = self.sessions.at_mut(sid).ok_or("an end without session")?;
        if finished.n != session.last_out + 1 {
            return Err("an out number that is not the next one");
        }
        session.last_out = finished.n;
        if let Some(run) = self.runs.at_mut(n) {
            run.finished = Some((finished, fds));
        }
        self.finish_if_complete(n);
        Ok(())
    }

    /// Goes on with an end that nothing holds back any more.
    pub(crate) fn finish_if_complete(&mut self, n: u64) {
        let Some(run) = self.runs.at_mut(n) else { return };
        if run.ladder || run.capturing > 0 {
            return;
        }
        let Some((finished, fds)) = run.finished.take() else { return };
        let sid = run.sid;
        run.stage = Stage::AwaitClose;
        if let Some(timer) = run.deadline.take() {
            self.disarm(timer);
        }
        let detail: Option<Detail> = serde_json::from_slice(finished.detail.as_slice()).ok();
        let value = relayable(finished.value.as_slice().to_vec());
        let (Some(detail), Ok(value)) = (detail, value) else {
            return self.violated(sid, "an end of another shape");
        };
        self.commit(sid, &finished, &detail.changed);
        let out = finished.n;
        self.task_finished(n, out, &finished, &detail);
        let answer = self.run_answer(n, out, &finished, &detail, &value);
        self.close_run(n, out, finished, fds, detail, answer);
    }

    /// What the session is after a commit.
    fn commit(&mut self, sid: Sid, finished: &Finished, changed: &[String]) {
        let Some(session) = self.sessions.at_mut(sid) else { return };
        session.cwd = finished.session_cwd.as_slice().to_vec();
        if finished.env_changed {
            session.commit_env(finished.env.as_slice().iter().map(|entry| entry.as_slice().to_vec()).collect());
        }
        let known = ["cwd", "env", "reef"];
        let changed: Vec<&str> = known.into_iter().filter(|name| changed.iter().any(|c| c == name)).collect();
        if !changed.is_empty() {
            self.session_changed(sid, &changed);
        }
    }

    fn run_answer(&self, n: u64, out: u64, finished: &Finished, detail: &Detail, value: &str) -> RunAnswer {
        let cwd = wire_path(finished.cwd.as_slice());
        let elapsed = finished.elapsed_ms;
        if finished.ending == Ending::Value {
            let held = if detail.held_by > 0 { format!(r#","held_by":{}"#, detail.held_by) } else { String::new() };
            let render = quoted(finished.render.as_str());
            let members = format!(
                concat!(
                    r#"{{"ref":"out:{out}","uri":"shoal://out/{out}","value":{value},"render":{render},"#,
                    r#""elapsed_ms":{elapsed},"cwd":{cwd}{held}"#
                ),
                out = out,
                value = value,
                render = render,
                elapsed = elapsed,
                cwd = cwd,
                held = held,
            );
            return Ok(members.into());
        }
        let raised = detail.error.as_ref();
        let code = match (finished.ending, raised) {
            (Ending::Deadline, _) => "deadline_exceeded",
            (Ending::Cancelled, _) => "cancelled",
            (_, Some(raised)) => raised.code.as_str(),
            (_, None) => "error",
        };
        let message = raised.map_or(code, |raised| raised.message.as_str());
        let uri = format!("shoal://out/{out}");
        let mut data = json!({
            "code": code,
            "span": raised.and_then(|r| r.span.clone()),
            "hint": raised.and_then(|r| r.hint.clone()),
            "status": raised.and_then(|r| r.status),
            "stderr": raised.and_then(|r| r.stderr.as_deref()).map(|text| shoal_wire::text::stderr(text, &uri).into_owned()),
            "ref": format!("out:{out}"), "uri": uri, "elapsed_ms": elapsed,
            "cwd": serde_json::from_str::<Value>(&cwd).unwrap_or_default(),
        });
        if let Some(receipt) = self.tasks.at(n).and_then(|task| task.receipt.as_ref()) {
            data["receipt"] = serde_json::from_str(&receipt.to_json()).unwrap_or_default();
        }
        Err(RpcError::new(shoal_wire::Code::Raised, shoal_wire::text::plain(message)).with(data))
    }

    fn task_finished(&mut self, n: u64, out: u64, finished: &Finished, detail: &Detail) {
        let Some(task) = self.tasks.at_mut(n) else { return };
        task.stdout_bytes = detail.stdout_bytes.unwrap_or(task.stdout_bytes);
        task.stderr_bytes = detail.stderr_bytes.unwrap_or(task.stderr_bytes);
        task.held_by = detail.held_by;
        task.deadline_exceeded |= finished.ending == Ending::Deadline;
        if finished.ending == Ending::Value {
            // The end is told with the answer, after the row is closed; the result is known now.
            task.result = Some(out);
        }
    }

    fn close_run(
        &mut self,
        n: u64,
        out: u64,
        finished: Finished,
        fds: VecDeque<OwnedFd>,
        detail: Detail,
        answer: RunAnswer,
    ) {
        let Some(run) = self.runs.at_mut(n) else { return };
        let (Some(entry), sid, began) = (run.entry, run.sid, run.ts) else { return };
        let statements = std::mem::take(&mut run.statements);
        let mut outputs = std::mem::take(&mut run.captured);
        let raised = finished.ending != Ending::Value;
        outputs.extend(outputs_of(&finished, fds, raised));
        let ended = match finished.ending {
            Ending::Value | Ending::Raised => None,
            Ending::Cancelled => Some(Ended::Cancelled),
            Ending::Deadline => Some(Ended::Deadline),
        };
        let closing = Closing {
            dur_ns: self.now.ns.saturating_sub(began),
            status: detail.status,
            ok: detail.ok && !raised,
            ended,
            out: i64::try_from(out).ok(),
            summary: detail.summary.clone(),
            outputs,
        };
        let session = self.sessions.at(sid);
        let owner = session.map_or_else(String::new, |session| session.owner.to_string());
        let name = session.map_or_else(String::new, |session| session.name.to_string());
        let closed = Closed { owner, session: name, closing, statements, transcript: !raised };
        let end = match &answer {
            Ok(_) => TaskEnd::Value { out, ok: detail.ok, signaled: detail.signaled, exit_code: detail.exit_code },
            Err(error) => TaskEnd::Error(error.clone()),
        };
        let render = (!raised).then(|| finished.render.as_str().to_owned());
        self.close(entry, closed, move |broker, recorded| {
            broker.tell_worker(sid, ToWorker::Ack(RunMessage { run: n }));
            if let Some(render) = render {
                broker.render_event(sid, out, &render);
            }
            broker.run_over(n, Some(out), &answer, end, recorded);
        });
    }

    /// The execution is over and recorded: who waits is answered, the record is kept or goes.
    pub(crate) fn run_over(&mut self, n: u64, out: Option<u64>, answer: &RunAnswer, end: TaskEnd, recorded: bool) {
        let Some(run) = self.runs.remove(n) else { return };
        let (now_ns, now) = (self.now.ns, self.now.mono);
        if let Some(task) = self.tasks.at_mut(n) {
            task.end(end, now_ns);
        }
        if let Some(session) = self.sessions.at_mut(run.sid) {
            session.running.retain(|running| *running != n);
            if let Some((key, _)) = &run.key {
                session.keys.end(key, answer.clone(), now);
            }
        }
        for waiter in run.waiters {
            if let Some(timer) = waiter.timer {
                self.disarm(timer);
            }
            if let (Some(out), Some(client)) = (out, self.clients.at_mut(waiter.ask.conn))
                && let Some(attachment) = client.attachment_mut().filter(|a| a.sid == run.sid)
            {
                attachment.last_out = Some(out);
            }
            self.send_answer(waiter.ask, &answer_for(answer, waiter.replayed, recorded));
        }
        if let (Some(plan), Some(out)) = (&run.plan, out) {
            self.plan_finished(plan, out);
        }
        self.task_over(n);
        self.arm_idle(run.sid);
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
        let denial = error.is(shoal_wire::Code::LeashDenied) || error.is(shoal_wire::Code::ApprovalRequired);
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
        if announced {
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
        let Some(entry) = run.entry else { return self.refuse_run(n, error) };
        if run.stage == Stage::AwaitClose {
            // Its end is on the way into the journal and will be answered.
            return;
        }
        run.stage = Stage::AwaitClose;
        let (sid, began) = (run.sid, run.ts);
        let statements = std::mem::take(&mut run.statements);
        if let Some(timer) = run.deadline.take() {
            self.disarm(timer);
        }
        let task = self.tasks.at(n);
        let owner = task.map_or_else(String::new, |task| task.owner.to_string());
        let session = task.map_or_else(String::new, |task| task.session.to_string());
        let dur_ns = self.now.ns.saturating_sub(began);
        let closing = Closing { dur_ns, ended: Some(ended), ..Closing::default() };
        let closed = Closed { owner, session, closing, statements, transcript: false };
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

/// The outputs a finished execution leaves: of a raise only stderr.
fn outputs_of(finished: &Finished, mut fds: VecDeque<OwnedFd>, raised: bool) -> Vec<Output> {
    let mut outputs = Vec::new();
    let mut attached = |kind: &str, set: bool, keep: bool| {
        let fd = if set { fds.pop_front() } else { None };
        let bytes = fd.and_then(|fd| shoal_sys::memfd::read_sealed(&fd, MAX_OUTPUT).ok());
        if let Some(bytes) = bytes.filter(|bytes| keep && !bytes.is_empty()) {
            outputs.push(output(kind, bytes));
        }
    };
    attached("stdout", finished.stdout, !raised);
    attached("stderr", finished.stderr, true);
    attached("value", finished.full, !raised);
    if !raised {
        if !finished.full {
            outputs.push(output("value", finished.value.as_slice().to_vec()));
        }
        if !finished.render.is_empty() {
            outputs.push(output("render", finished.render.as_bytes().to_vec()));
        }
    } else if !finished.stderr
        && let Ok(detail) = serde_json::from_slice::<Detail>(finished.detail.as_slice())
        && let Some(stderr) = detail.error.and_then(|error| error.stderr).filter(|text| !text.is_empty())
    {
        outputs.push(output("stderr", stderr.into_bytes()));
    }
    outputs
}

fn output(kind: &str, mut bytes: Vec<u8>) -> Output {
    let original = bytes.len();
    let meta = (original > MAX_OUTPUT - TRUNCATED.len()).then(|| {
        bytes.truncate(MAX_OUTPUT - TRUNCATED.len());
        bytes.extend_from_slice(TRUNCATED);
        json!({"truncated": true, "original_len": original, "stored_len": bytes.len()})
    });
    Output { kind: kind.to_owned(), data: OutputData::Bytes(bytes), meta }
}

const _: () = assert!(MAX_JSON <= MAX_OUTPUT, "every inline value can be stored");
