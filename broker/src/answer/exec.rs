//! `exec`: from its parameters to a started execution, and what a waiting client is told before the end.

use std::rc::Rc;
use std::time::Duration;

use shoal_proto::broker_worker::{Elide, Position};
use shoal_wire::elide::{Budgets, ElideSpec};
use shoal_wire::params::exec::{Exec, Mode, Position as WirePosition};
use shoal_wire::{RpcError, params};

use super::Params;
use super::replay::key_reuse;
use crate::broker::{Broker, or_refuse};
use crate::clients::{Ask, Attachment};
use crate::keys::{self, Use};
use crate::quotas::Quota;
use crate::runs::{Patience, Waiter, answer_for};
use crate::sessions::Sid;

/// A client that wants its task at once gets it when the run has started, or after this.
const AT_ONCE: Duration = Duration::from_millis(1000);

/// What a client asked to have evaluated.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// Where it runs.
    pub(crate) sid: Sid,
    /// Who asked.
    pub(crate) principal: Rc<str>,
    /// The source.
    pub(crate) src: Rc<str>,
    /// Position of the last statement.
    pub(crate) position: Position,
    /// Kill it this long after its start.
    pub(crate) deadline_ms: Option<i64>,
    /// Idempotency key and its body.
    pub(crate) key: Option<(String, keys::Body)>,
    /// Bounds of the answer.
    pub(crate) elide: Elide,
    /// Keep colours.
    pub(crate) tty: bool,
    /// The human asked.
    pub(crate) human: bool,
    /// The plan it applies.
    pub(crate) plan: Option<Rc<str>>,
}

/// Bounds as the worker takes them.
pub(crate) fn elide(spec: &ElideSpec) -> Elide {
    let Budgets { max_bytes, max_rows, max_bytes_raw, max_items, .. } = spec.budgets();
    let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    Elide {
        max_bytes: small(max_bytes),
        max_rows: small(max_rows),
        max_bytes_raw: small(max_bytes_raw),
        max_items: small(max_items),
    }
}

/// Bounds for a client that said nothing.
pub(crate) fn default_elide() -> Elide {
    elide(&ElideSpec::default())
}

/// A position as the worker takes it.
pub(crate) fn position(position: WirePosition) -> Position {
    match position {
        WirePosition::Stmt => Position::Stmt,
        WirePosition::Value => Position::Value,
    }
}

impl Broker {
    /// `exec` in all its modes.
    pub(super) fn answer_exec(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let exec = or_refuse!(self, ask, params::decode::<Exec>(text));
        match exec.mode {
            Mode::Approved => {
                let message = "approved plans are run by plan.apply";
                self.reply(ask, Err(RpcError::denied("use_plan_apply", message)));
            }
            Mode::Plan => self.answer_exec_plan(ask, caller, exec),
            Mode::Run => self.answer_exec_run(ask, caller, exec),
        }
    }

    fn answer_exec_run(&mut self, ask: Ask, caller: &Attachment, exec: Exec) {
        let patience = patience(exec.background, exec.timeout_ms.map(|ms| ms.unsigned()));
        let deadline_ms = exec.deadline_ms.map(|ms| ms.value());
        let key = exec.key.map(|key| {
            let body = keys::body(&exec.src, exec.mode.word(), exec.position.word(), deadline_ms);
            (key.0, body)
        });
        let order = Order {
            sid: caller.sid,
            principal: caller.principal.clone(),
            src: exec.src.into(),
            position: position(exec.position),
            deadline_ms,
            key,
            elide: elide(&exec.elide),
            tty: caller.tty,
            human: caller.human,
            plan: None,
        };
        match &order.key {
            Some((key, body)) => {
                let (key, body) = (key.clone(), *body);
                self.answer_keyed(ask, order, patience, &key, body);
            }
            None => self.answer_fresh(ask, order, patience),
        }
    }

    /// A call with a key: joins, repeats or starts the run the key stands for.
    pub(super) fn answer_keyed(
        &mut self,
        ask: Ask,
        order: Order,
        patience: (Patience, Duration),
        key: &str,
        body: keys::Body,
    ) {
        let now = self.now.mono;
        let known = self.sessions.at_mut(order.sid).and_then(|session| session.keys.find(key, now).cloned());
        match known {
            Some(known) if known.body != body => self.reply(ask, Err(key_reuse(known.entry))),
            Some(known) => match known.used {
                Use::Running(n) => self.wait_for_run(n, ask, patience, true),
                Use::Done(answer) => self.send_answer(ask, &answer_for(&answer, true, true)),
            },
            None => self.look_up_key(ask, order, patience, key.to_owned(), body),
        }
    }

    pub(super) fn answer_fresh(&mut self, ask: Ask, order: Order, patience: (Patience, Duration)) {
        or_refuse!(self, ask, self.admit_run(order.sid));
        let n = self.start_run(order, patience.0 == Patience::UntilEnd);
        self.wait_for_run(n, ask, patience, false);
        self.prepare_run(n);
    }

    /// Quotas of one more execution.
    pub(super) fn admit_run(&self, sid: Sid) -> Result<(), RpcError> {
        let running = self.sessions.at(sid).map_or(0, |session| session.running.len());
        self.quotas.admit(Quota::ExecsPerSession, running)?;
        self.quotas.admit(Quota::Tasks, self.tasks.running())
    }

    /// Adds a client to those who wait for a run.
    pub(super) fn wait_for_run(&mut self, n: u64, ask: Ask, patience: (Patience, Duration), replayed: bool) {
        let id = self.fresh();
        let (patience, delay) = patience;
        let delay = match patience {
            Patience::UntilEnd => None,
            Patience::Task | Patience::NoTime => Some(AT_ONCE),
            Patience::Timeout => Some(delay),
        };
        let timer = delay.map(|delay| self.after(delay, move |broker| broker.hand_over(n, id)));
        let Some(run) = self.runs.at_mut(n) else { return };
        let running = matches!(run.stage, crate::runs::Stage::Running { .. } | crate::runs::Stage::AwaitClose);
        run.waiters.push(Waiter { id, ask, replayed, patience, timer });
        if running && wants_task_now(patience) {
            self.hand_over(n, id);
        }
    }

    /// A client does not wait any longer: it gets the task.
    pub(crate) fn hand_over(&mut self, n: u64, waiter: u64) {
        let Some(run) = self.runs.at_mut(n) else { return };
        let Some(at) = run.waiters.iter().position(|waiting| waiting.id == waiter) else { return };
        let waiter = run.waiters.swap_remove(at);
        if let Some(timer) = waiter.timer {
            self.disarm(timer);
        }
        let timed_out =
            if matches!(waiter.patience, Patience::Timeout | Patience::NoTime) { r#","timed_out":true"# } else { "" };
        let replayed = if waiter.replayed { r#","replayed":true"# } else { "" };
        let body =
            format!(r#"{{"task":"task:{n}","events":"task.{n}","uri":"shoal://task/{n}"{timed_out}{replayed}}}"#);
        self.keep_task(n);
        self.send_answer(waiter.ask, &Ok(body));
    }

    /// Clients that wanted a task at once get it now that the run has started.
    pub(crate) fn hand_over_started(&mut self, n: u64) {
        let Some(run) = self.runs.at(n) else { return };
        let now: Vec<u64> = run.waiters.iter().filter(|w| wants_task_now(w.patience)).map(|w| w.id).collect();
        for waiter in now {
            self.hand_over(n, waiter);
        }
    }
}

fn wants_task_now(patience: Patience) -> bool {
    matches!(patience, Patience::Task | Patience::NoTime)
}

/// How long a client waits, from the members it sent.
pub(super) fn patience(background: bool, timeout_ms: Option<u64>) -> (Patience, Duration) {
    match (background, timeout_ms) {
        (true, _) => (Patience::Task, Duration::ZERO),
        (false, Some(0)) => (Patience::NoTime, Duration::ZERO),
        (false, Some(ms)) => (Patience::Timeout, Duration::from_millis(ms)),
        (false, None) => (Patience::UntilEnd, Duration::ZERO),
    }
}
