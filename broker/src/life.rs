//! The life of sessions: ordered, adopted, ended; and what their end resolves.

use std::rc::Rc;

use shoal_journal::{Closing, Ended as RowEnded, Row};
use shoal_proto::Text;
use shoal_proto::broker_worker::OpenRun;
use shoal_proto::supervisor_broker::{Adopted, CreateSession, Killed, SessionFailed, SessionId, ToSupervisor};
use shoal_wire::RpcError;

use crate::broker::Broker;
use crate::record::Closed;
use crate::sessions::{Ended, Recipe, Sid, Stage};
use crate::supervisor_edge::OrderDone;
use crate::tasks::TaskState;

/// A directory that is there in every session's view.
const ROOT: &str = "/";

/// Why there is no session, for who asked for it.
fn not_made(failed: &SessionFailed) -> RpcError {
    if failed.no_such_dir {
        let message = "`create.cwd` is no directory inside the session's view";
        return RpcError::invalid("create.cwd", shoal_wire::error::Reason::NotADirectory, message);
    }
    let message = format!("the session could not be made: {}", failed.step.as_str());
    let missing: [&str; 0] = [];
    let hint = match failed.remedy.as_str() {
        "" => "`shoal doctor` tries each step and says what is missing",
        remedy => remedy,
    };
    RpcError::denied("confinement", crate::json::one_line(&message, 512))
        .and("missing", missing.as_slice())
        .and("hint", hint)
}

impl Broker {
    /// Orders the processes of a session, new or to be started anew.
    pub(crate) fn order_session(&mut self, sid: Sid) {
        let Some(session) = self.sessions.at(sid) else { return };
        let cwd = String::from_utf8(session.cwd.clone()).ok().and_then(|cwd| Text::new(cwd).ok());
        self.order_session_in(sid, cwd.unwrap_or_else(|| self.start.start_dir.clone()));
    }

    fn order_session_in(&mut self, sid: Sid, cwd: Text<4096>) {
        let Some(session) = self.sessions.at(sid) else { return };
        let (owner, name) = (Text::cut(&session.owner), Text::cut(&session.name));
        let limits = session.limits.clone();
        let is_root = cwd.as_str() == ROOT;
        let order = self.fresh();
        self.expect_session(order, sid);
        self.orders.insert(
            order,
            Box::new(move |broker, done| {
                if let OrderDone::Failed(failed) = done {
                    broker.ordered.remove(&order);
                    broker.on_not_made(sid, &failed, is_root);
                }
            }),
        );
        let create = CreateSession { order, owner, name, cwd, limits, lane: None };
        self.supervisor.send(ToSupervisor::CreateSession(create));
    }

    /// The processes of a session could not be made. A session that has lived goes on when its directory is gone, as with a
    /// worker that is replaced; one that cannot be made anew for another reason stays until somebody kills it.
    fn on_not_made(&mut self, sid: Sid, failed: &SessionFailed, in_root: bool) {
        let Some(session) = self.sessions.at_mut(sid) else { return };
        if !failed.no_such_dir {
            let label = session.label();
            crate::log::line(format_args!("session {label} not made: {} (errno {})", failed.step, failed.errno));
        }
        let is_new = session.stage == Stage::Starting;
        // A directory that nobody named is no reason to have no session: the kernel's own may lie outside its view.
        if failed.no_such_dir && !in_root && !(is_new && session.cwd_wanted) {
            if is_new {
                session.cwd = ROOT.as_bytes().to_vec();
            }
            return self.order_session_in(sid, Text::cut(ROOT));
        }
        if is_new {
            return self.give_up_session(sid, &not_made(failed));
        }
        self.fail_session(sid, &format!("it could not be started anew: {}", failed.step.as_str()));
    }

    /// A session that could not be made: who waits for it is told, and it is forgotten.
    fn give_up_session(&mut self, sid: Sid, error: &RpcError) {
        self.sessions.remove(sid);
        self.captures.forget(sid);
        self.session_is_up(sid, Err(error.clone()));
        for n in self.runs.in_session(sid) {
            self.abort_run(n, error.clone(), RowEnded::Killed);
        }
    }

    /// Ends a session: who waits in it is told now, its processes are ended by the supervisor.
    pub(crate) fn end_session(&mut self, sid: Sid, ended: Ended) {
        self.kill_session(sid, ended, |_, _| {});
    }

    /// The same; `then` gets what ended, or `None` when there was nothing to end.
    pub(crate) fn kill_session(
        &mut self,
        sid: Sid,
        ended: Ended,
        then: impl FnOnce(&mut Self, Option<Killed>) + 'static,
    ) {
        let Some(session) = self.sessions.at_mut(sid) else { return then(self, None) };
        session.stage = Stage::Ending;
        if ended.reason == "killed" {
            self.forget_watches(sid);
        }
        let Some(session) = self.sessions.at(sid) else { return then(self, None) };
        let (id, name, owner) = (session.id, session.name.clone(), session.owner.clone());
        let out = session.last_out;
        let action = if ended.reason == "idle" { "expired" } else { "killed" };
        self.session_event(sid, action, ended.note.as_deref().or(Some(ended.reason)), None);
        self.note_session(sid, action, ended.note.as_deref().or(Some(ended.reason)), ended.by.as_deref());
        let (by, note) = (ended.by.as_deref(), ended.note.as_deref());
        let error = RpcError::session_ended(&name, &owner, ended.reason, by, note);
        for n in self.runs.in_session(sid) {
            self.abort_run(n, error.clone(), RowEnded::Killed);
        }
        // What its worker was never heard of, since it was frozen.
        self.close_lost_rows(sid);
        self.fail_worker_calls(sid, &error);
        self.fail_plannings(sid, &error);
        self.fail_launcher_calls(sid, &error);
        self.lose_ptys(sid, &error);
        self.session_is_up(sid, Err(error));
        for (_, client) in self.clients.iter_mut() {
            if let Some(attachment) = client.attachment_mut().filter(|a| a.sid == sid) {
                attachment.ended = Some(ended.clone());
            }
        }
        self.numbers.note_out(&owner, &name, out);
        let kept: Vec<u64> = self.tasks.list(sid).map(|task| task.n).collect();
        for n in kept {
            if self.tasks.at(n).is_some_and(|task| task.state.is_terminal()) {
                self.forget_task(n);
            }
        }
        self.sessions.remove(sid);
        self.captures.forget(sid);
        match id {
            Some(id) => {
                self.ancestors.remove(&id);
                self.kill_processes(id, then);
            }
            None => self.kill_unborn(sid, then),
        }
    }

    fn kill_processes(&mut self, id: SessionId, then: impl FnOnce(&mut Self, Option<Killed>) + 'static) {
        self.order(
            |order| ToSupervisor::KillSession(Self::order_about(id)(order)),
            |broker, done| {
                let killed = if let OrderDone::Killed(killed) = done { Some(killed) } else { None };
                then(broker, killed);
            },
        );
    }

    /// Processes that are on their way for a session that was ended meanwhile: nobody else would ever end them.
    fn kill_unborn(&mut self, sid: Sid, then: impl FnOnce(&mut Self, Option<Killed>) + 'static) {
        let Some(order) = self.ordered.iter().find(|(_, of)| **of == sid).map(|(order, _)| *order) else {
            return then(self, None);
        };
        self.ordered.remove(&order);
        let born = move |broker: &mut Self, done| match done {
            OrderDone::Up(id) => broker.kill_processes(id, then),
            _ => then(broker, None),
        };
        self.orders.insert(order, Box::new(born));
    }

    /// A session that lived when this broker was started.
    pub(crate) fn adopt_session(&mut self, adopted: &Adopted) -> Sid {
        let (owner, name): (Rc<str>, Rc<str>) = (adopted.owner.as_str().into(), adopted.name.as_str().into());
        let last_out = self.numbers.last_out(&owner, &name);
        let recipe = Recipe {
            owner,
            name,
            cwd: self.start.start_dir.as_str().as_bytes().to_vec(),
            cwd_wanted: false,
            env: Vec::new(),
            limits: Default::default(),
            output_cap: None,
            last_out,
        };
        let sid = self.sessions.create(recipe, self.now.ns, self.now.mono);
        self.sessions.bind(sid, adopted.session);
        if let Some(session) = self.sessions.at_mut(sid) {
            session.stage = Stage::Restarting;
            session.first_out = 1;
            session.frozen = adopted.frozen;
        }
        self.load_first_out(sid);
        self.load_watches(sid, move |broker| broker.arm_idle(sid));
        sid
    }

    /// Finds where the results of an adopted session begin.
    fn load_first_out(&mut self, sid: Sid) {
        let Some(session) = self.sessions.at(sid) else { return };
        let (owner, name) = (session.owner.to_string(), session.name.to_string());
        self.read(
            move |store| store.out_before_creation(&owner, &name),
            move |broker, before| match (before, broker.sessions.at_mut(sid)) {
                (Ok(before), Some(session)) => session.first_out = u64::try_from(before).map_or(1, |before| before + 1),
                (Ok(_), None) => {}
                (Err(error), _) => crate::log::line(format_args!("first result not read: {error}")),
            },
        );
    }

    /// What an adopted worker still has, against the rows that are open.
    pub(crate) fn reconcile(&mut self, sid: Sid, open: &[OpenRun]) {
        let Some(session) = self.sessions.at(sid) else { return };
        let (owner, name) = (session.owner.to_string(), session.name.to_string());
        for run in open {
            let known = self.runs.at(run.run).is_some();
            // A worker can name the runs of its own session alone.
            let row = self
                .open_rows
                .iter()
                .position(|row| row.run == i64::try_from(run.run).ok() && row.owner == owner && row.session == name);
            match row {
                Some(at) if !known && !run.prepared => {
                    let row = self.open_rows.swap_remove(at);
                    self.adopt_run(sid, run, &row);
                }
                // Prepared for a broker that is gone, or of no row: it never ran and must not.
                Some(_) | None if !known => {
                    self.tell_worker(
                        sid,
                        shoal_proto::broker_worker::ToWorker::Discard(shoal_proto::broker_worker::Run { run: run.run }),
                    );
                }
                Some(_) | None => {}
            }
        }
        self.close_lost_rows(sid);
    }

    fn adopt_run(&mut self, sid: Sid, open: &OpenRun, row: &Row) {
        let n = open.run;
        let Some(session) = self.sessions.at_mut(sid) else { return };
        session.running.push(n);
        let key = row.key.clone();
        let body = row.key_body.as_deref().and_then(|body| <[u8; 32]>::try_from(body).ok());
        if let (Some(key), Some(body)) = (&key, body) {
            session.keys.begin(key, body, n);
            session.keys.record(key, row.id);
        }
        let order = crate::answer::RunOrder {
            sid,
            principal: row.principal.as_str().into(),
            src: row.src.as_str().into(),
            position: shoal_proto::broker_worker::Position::Value,
            deadline_ms: open.deadline_ms.and_then(|ms| i64::try_from(ms).ok()),
            key: key.zip(body),
            elide: crate::answer::default_elide(),
            tty: false,
            human: self.is_local_user(&row.principal),
            plan: None,
        };
        self.adopt_running(n, order, row, open.suspended);
        self.keep_task(n);
    }

    /// Rows of a session whose work is gone.
    pub(crate) fn close_lost_rows(&mut self, sid: Sid) {
        let Some(session) = self.sessions.at(sid) else { return };
        let (owner, name) = (session.owner.to_string(), session.name.to_string());
        let lost: Vec<Row> = self.open_rows.extract_if(.., |row| row.owner == owner && row.session == name).collect();
        for row in lost {
            self.close_interrupted(&row);
        }
    }

    /// Closes a row whose work is gone.
    pub(crate) fn close_interrupted(&mut self, row: &Row) {
        let closing = Closing { ended: Some(RowEnded::Interrupted), ..Closing::default() };
        let closed = Closed {
            owner: row.owner.clone(),
            session: row.session.clone(),
            closing,
            statements: Vec::new(),
            attached: Vec::new(),
            transcript: false,
        };
        self.close(row.id, closed, |_, _| {});
    }

    // ---- task records

    /// The next task number; its mark is written before the row of its run.
    pub(crate) fn take_task_number(&mut self) -> u64 {
        let (n, mark) = self.numbers.tasks.take();
        self.write_mark(crate::numbers::TASKS, mark);
        n
    }

    /// Writes the mark of a counter.
    pub(crate) fn write_mark(&mut self, name: &'static str, mark: Option<i64>) {
        let Some(mark) = mark else { return };
        self.write_synced(
            move |store| store.raise_counter(name, mark),
            |_, written| {
                if let Err(error) = written {
                    crate::log::line(format_args!("counter not written: {error}"));
                }
            },
        );
    }

    /// A client can name the task from now on: its record stays and its channel begins.
    pub(crate) fn keep_task(&mut self, n: u64) {
        let foreground = self
            .runs
            .at(n)
            .is_some_and(|run| run.waiters.iter().any(|waiter| waiter.patience == crate::runs::Patience::UntilEnd));
        let Some(task) = self.tasks.at_mut(n) else { return };
        task.kept = true;
        task.foreground = foreground;
        if std::mem::replace(&mut task.announced, true) {
            return;
        }
        let (owner, sid, reference) = (task.owner.clone(), task.sid, task.reference());
        self.publish(&owner, &format!("task.{n}"), &crate::json::tagged_str("started"));
        self.session_event(sid, "task_started", None, Some(&reference));
    }

    /// The state of a task changed.
    pub(crate) fn task_event(&mut self, n: u64) {
        let Some(task) = self.tasks.at(n).filter(|task| task.announced) else { return };
        let (owner, payload) = (task.owner.clone(), task.event());
        self.publish(&owner, &format!("task.{n}"), &payload);
    }

    /// Output came: told at most ten times a second, and only when a count changed.
    pub(crate) fn task_progress(&mut self, n: u64, stdout: u64, stderr: u64) {
        let now = self.now.mono;
        let Some(task) = self.tasks.at_mut(n) else { return };
        if (task.stdout_bytes, task.stderr_bytes) == (stdout, stderr) {
            return;
        }
        (task.stdout_bytes, task.stderr_bytes) = (stdout, stderr);
        let soon = task.told.is_some_and(|told| now.saturating_sub(told) < std::time::Duration::from_millis(100));
        if !soon {
            task.told = Some(now);
            self.task_event(n);
        }
    }

    /// A run is over: its record is told and kept, or forgotten.
    pub(crate) fn task_over(&mut self, n: u64) {
        self.task_event(n);
        self.wake_task_waiters(n);
        let Some(task) = self.tasks.at(n) else { return };
        let (sid, kept, announced, reference) = (task.sid, task.kept, task.announced, task.reference());
        if announced {
            self.session_event(sid, "task_ended", None, Some(&reference));
        }
        if !kept || self.sessions.at(sid).is_none() {
            return self.forget_task(n);
        }
        let Some(session) = self.sessions.at_mut(sid) else { return };
        session.kept.push_back(n);
        let oldest = if session.kept.len() > shoal_wire::limits::KEPT_TASKS { session.kept.pop_front() } else { None };
        if let Some(oldest) = oldest {
            self.forget_task(oldest);
        }
    }

    /// Forgets a record and its channel.
    pub(crate) fn forget_task(&mut self, n: u64) {
        if let Some(task) = self.tasks.remove(n)
            && task.announced
        {
            self.drop_channel(&task.owner, &format!("task.{n}"));
        }
    }

    /// Marks a task as wanted to end.
    pub(crate) fn cancelling(&mut self, n: u64) {
        if let Some(task) = self.tasks.at_mut(n) {
            task.cancel_requested = true;
            task.state = TaskState::Cancelling;
        }
        self.task_event(n);
    }
}
