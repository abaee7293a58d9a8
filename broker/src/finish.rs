//! The end of an execution: checked, committed, recorded, told; only then answered.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use shoal_journal::{Closing, Ended, Output, OutputData};
use shoal_proto::broker_worker::{Ack, Ending, Finished, MAX_JSON, ToWorker};
use shoal_proto::hello::SessionRole;
use shoal_wire::RpcError;
use shoal_wire::limits::STDERR_BYTES;

use crate::broker::Broker;
use crate::json::{quoted, relayable, wire_path};
use crate::record::{Attached, Closed};
use crate::runs::{RunAnswer, Stage, answer_for};
use crate::sessions::{OUT_MARKS, Session, Sid};
use crate::tasks::TaskEnd;

/// Stored bytes of one output (`value`, `render`).
const MAX_OUTPUT: usize = 256 * 1024 * 1024;
/// The line a longer output ends with.
const TRUNCATED: &[u8] = b"\n[shoal: output truncated; see journal metadata]";

/// Standard error in the data of an error. The worker bounds it; what is longer than that is cut here.
fn bounded_stderr(text: &str, uri: &str) -> String {
    /// The line that stands for what is missing.
    const MARKER: usize = 256;
    if text.len() <= STDERR_BYTES + MARKER {
        return text.to_owned();
    }
    shoal_wire::text::stderr(text, &format!("{uri}?path=stderr")).into_owned()
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
    /// The end of an execution. It is held back while its receipt is outstanding.
    pub(crate) fn on_finished(
        &mut self,
        sid: Sid,
        finished: Finished,
        fds: VecDeque<OwnedFd>,
    ) -> Result<(), &'static str> {
        let n = finished.run;
        // A run that was aborted meanwhile: its late end is dropped, and the worker may forget it.
        let Some(run) = self.runs.of(sid, n) else {
            // One that an earlier broker recorded is told again: its number is given all the same.
            let next = |session: &&mut Session| session.went_on && session.last_out + 1 == finished.n;
            if let Some(session) = self.sessions.at_mut(sid).filter(next) {
                session.last_out = finished.n;
            }
            self.tell_worker(sid, ToWorker::Ack(Ack { run: n, stored: false, kept: false }));
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
        session.take_out(finished.n)?;
        // The worker has committed it: what is derived from here on is derived there, also while a receipt holds this back.
        session.cwd = finished.session_cwd.as_slice().to_vec();
        if finished.env_changed {
            session.commit_env(finished.env.as_slice().iter().map(|entry| entry.as_slice().to_vec()).collect());
        }
        if let Some(run) = self.runs.at_mut(n) {
            run.finished = Some((finished, fds));
        }
        self.finish_if_complete(n);
        Ok(())
    }

    /// A result of no execution got its number, which is not given again in this state directory.
    pub(crate) fn on_numbered(&mut self, sid: Sid, n: u64) -> Result<(), &'static str> {
        let session = self.sessions.at_mut(sid).ok_or("a number without session")?;
        session.take_out(n)?;
        self.mark_outs(sid);
        Ok(())
    }

    /// Marks the numbers of a session as given, one mark at a time: a worker that takes many must not fill the journal's queue.
    fn mark_outs(&mut self, sid: Sid) {
        let Some(session) = self.sessions.at_mut(sid) else { return };
        if session.marks_outs || session.last_out <= session.out_mark {
            return;
        }
        session.marks_outs = true;
        session.out_mark = session.last_out + OUT_MARKS;
        let counter = crate::record::out_counter(&session.owner, &session.name);
        let mark = i64::try_from(session.out_mark).unwrap_or(i64::MAX);
        self.write(
            move |store| store.raise_counter(&counter, mark),
            move |broker, written| {
                if let Err(error) = written {
                    crate::log::line(format_args!("counter not written: {error}"));
                }
                if let Some(session) = broker.sessions.at_mut(sid) {
                    session.marks_outs = false;
                }
                broker.mark_outs(sid);
            },
        );
    }

    /// Goes on with an end that nothing holds back any more.
    pub(crate) fn finish_if_complete(&mut self, n: u64) {
        let Some(run) = self.runs.at_mut(n) else { return };
        // One that was aborted while its end was held back is being closed already, and a row is closed once.
        if run.ladder || !matches!(run.stage, Stage::Running { .. }) {
            return;
        }
        let Some((finished, fds)) = run.finished.take() else { return };
        let sid = run.sid;
        let detail: Option<Detail> = serde_json::from_slice(finished.detail.as_slice()).ok();
        let value = relayable(finished.value.as_slice().to_vec());
        let (Some(detail), Ok(value)) = (detail, value) else {
            // Still running for everybody else, so that it is aborted with its session.
            return self.violated(sid, SessionRole::Worker, "an end of another shape");
        };
        run.stage = Stage::AwaitClose;
        if let Some(timer) = run.deadline.take() {
            self.disarm(timer);
        }
        self.tell_what_changed(sid, &detail.changed);
        let out = finished.n;
        self.task_finished(n, out, &finished, &detail);
        let answer = self.run_answer(n, out, &finished, &detail, &value);
        self.close_run(n, out, finished, fds, detail, answer);
    }

    /// Tells what an execution changed of its session.
    fn tell_what_changed(&mut self, sid: Sid, changed: &[String]) {
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
            "stderr": raised.and_then(|r| r.stderr.as_deref()).map(|text| bounded_stderr(text, &uri)),
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
        let (Some(entry), sid, began) = (run.entry, run.sid, run.began) else { return };
        let statements = std::mem::take(&mut run.statements);
        let mut outputs = std::mem::take(&mut run.captured);
        let raised = finished.ending != Ending::Value;
        outputs.extend(inline_outputs(&finished, &detail, raised));
        let attached = attached_outputs(&finished, fds, raised);
        let ended = match finished.ending {
            Ending::Value | Ending::Raised => None,
            Ending::Cancelled => Some(Ended::Cancelled),
            Ending::Deadline => Some(Ended::Deadline),
        };
        let closing = Closing {
            dur_ns: began.elapsed_ns(self.now.mono),
            status: detail.status,
            ok: detail.ok && !raised,
            ended,
            out: i64::try_from(out).ok(),
            summary: summary(&detail, run.key.is_some().then_some(&answer), &finished),
            outputs,
        };
        let session = self.sessions.at(sid);
        let owner = session.map_or_else(String::new, |session| session.owner.to_string());
        let name = session.map_or_else(String::new, |session| session.name.to_string());
        let closed = Closed { owner, session: name, closing, attached, statements, transcript: !raised };
        let end = match &answer {
            Ok(_) => TaskEnd::Value { out, ok: detail.ok, signaled: detail.signaled, exit_code: detail.exit_code },
            Err(error) => TaskEnd::Error(error.clone()),
        };
        let render = (!raised).then(|| finished.render.as_str().to_owned());
        self.close(entry, closed, move |broker, recorded| {
            let kept = broker.tasks.at(n).is_some_and(|task| task.kept);
            broker.tell_worker(sid, ToWorker::Ack(Ack { run: n, stored: recorded, kept }));
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
}

/// What durable events say of a row; for a keyed run also what its answer said and the outputs do not.
fn summary(detail: &Detail, keyed: Option<&RunAnswer>, finished: &Finished) -> Option<Value> {
    let Some(answer) = keyed else { return detail.summary.clone() };
    let mut summary = detail.summary.clone().unwrap_or_else(|| json!({}));
    let cwd: Value = serde_json::from_str(&wire_path(finished.cwd.as_slice())).unwrap_or_default();
    summary["answer"] = match answer {
        Ok(_) => json!({"cwd": cwd, "elapsed_ms": finished.elapsed_ms, "held_by": detail.held_by}),
        Err(error) => json!({"error": error}),
    };
    Some(summary)
}

/// The outputs in a finished execution's own message: of a raise only stderr.
fn inline_outputs(finished: &Finished, detail: &Detail, raised: bool) -> Vec<Output> {
    let mut outputs = Vec::new();
    if raised {
        let stderr = detail.error.as_ref().and_then(|error| error.stderr.as_deref()).unwrap_or_default();
        if !finished.stderr && !stderr.is_empty() {
            outputs.push(output("stderr", stderr.as_bytes().to_vec()));
        }
        return outputs;
    }
    if !finished.full {
        outputs.push(output("value", finished.value.as_slice().to_vec()));
    }
    if !finished.render.is_empty() {
        outputs.push(output("render", finished.render.as_bytes().to_vec()));
    }
    outputs
}

/// The outputs attached to it, in the order of their descriptors; the journal's thread reads them.
fn attached_outputs(finished: &Finished, mut fds: VecDeque<OwnedFd>, raised: bool) -> Vec<Attached> {
    let named =
        [("stdout", finished.stdout, !raised), ("stderr", finished.stderr, true), ("value", finished.full, !raised)];
    let mut attached = Vec::new();
    for (kind, _, keep) in named.into_iter().filter(|(_, set, _)| *set) {
        if let Some(fd) = fds.pop_front().filter(|_| keep) {
            attached.push(Attached { kind, fd: Arc::new(fd) });
        }
    }
    attached
}

/// An output of a row, cut to what is stored of one.
pub(crate) fn output(kind: &str, mut bytes: Vec<u8>) -> Output {
    let original = bytes.len();
    let meta = (original > MAX_OUTPUT).then(|| {
        bytes.truncate(MAX_OUTPUT - TRUNCATED.len());
        bytes.extend_from_slice(TRUNCATED);
        json!({"truncated": true, "original_len": original, "stored_len": bytes.len()})
    });
    Output { kind: kind.to_owned(), data: OutputData::Bytes(bytes), meta }
}

const _: () = assert!(MAX_JSON <= MAX_OUTPUT, "every inline value can be stored");

#[cfg(test)]
mod tests {
    use crate::sessions::OUT_MARKS;
    use crate::testing::{self, section};

    #[test]
    fn many_numbers_have_one_mark_at_a_time_and_end_marked() {
        testing::with_broker(&[section("agent:x")], |world| {
            let sid = testing::session(&mut world.broker, "agent:x", "s");
            for n in 1..=10 * OUT_MARKS {
                world.broker.on_numbered(sid, n).expect("the next one");
            }
            let session = world.broker.sessions.at(sid).expect("there");
            assert_eq!((session.marks_outs, session.out_mark), (true, 1 + OUT_MARKS), "the first is not written yet");
            world.settle();
            let session = world.broker.sessions.at(sid).expect("there");
            assert!(!session.marks_outs && session.out_mark >= session.last_out, "{}", session.out_mark);
            let counter = crate::record::out_counter("agent:x", "s");
            let marked = world.broker.journal.wait(move |store| store.counter(&counter)).expect("read");
            assert!(marked >= i64::try_from(10 * OUT_MARKS).expect("few"), "{marked}");
            assert!(world.broker.on_numbered(sid, 3).is_err(), "a number is given once");
        });
    }
}
