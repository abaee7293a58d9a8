//! The broker's state, and what every answerer uses: time, timers, continuations, replies.
//!
//! State is changed by the loop alone. Work that has to wait leaves a continuation behind, a closure that the loop calls with what was
//! waited for; each table below says who resolves it, and the end of a session resolves what is left of its own.

use std::any::Any;
use std::collections::HashMap;
use std::time::Duration;

use shoal_journal::{Journal, JournalError, Row, Store};
use shoal_proto::supervisor_broker::{SessionId, Start, ToSupervisor};
use shoal_wire::{Code, RpcError, limits};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::bus::Bus;
use crate::capture::Captures;
use crate::clients::{Ask, Attachment, Clients, ConnId, Life};
use crate::edge::Peer;
use crate::launcher_edge::LauncherDone;
use crate::numbers::Numbers;
use crate::pending::{Calls, Waiting};
use crate::plans::Plans;
use crate::policy::Policy;
use crate::ptyd_edge::PtydDone;
use crate::ptys::Ptys;
use crate::quotas::Quotas;
use crate::runs::Runs;
use crate::sessions::{Sessions, Sid};
use crate::supervisor_edge::OrderDone;
use crate::tasks::Tasks;
use crate::timers::{TimerId, Timers};
use crate::tokens::Tokens;
use crate::wake::{JobDone, Wake};

/// A continuation.
pub(crate) type Then<T> = Box<dyn FnOnce(&mut Broker, T)>;
/// Who waits until a number of a channel may be told.
pub(crate) type UntilShown = (crate::bus::ChannelKey, u64, Then<()>);

/// The present, as the loop read it when it woke.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// Monotonic, since the broker's start; stands still while the machine sleeps.
    pub(crate) mono: Duration,
    /// Nanoseconds since the epoch.
    pub(crate) ns: i64,
}

/// What the broker is made of.
pub(crate) struct Broker {
    /// The present.
    pub(crate) now: Now,
    /// How the kernel was started.
    pub(crate) start: Start,
    /// Rules in force.
    pub(crate) policy: Policy,
    /// Limits in force.
    pub(crate) quotas: Quotas,
    /// What captures may keep.
    pub(crate) captures: Captures,
    /// Connections.
    pub(crate) clients: Clients,
    /// Sessions.
    pub(crate) sessions: Sessions,
    /// Executions that are not over.
    pub(crate) runs: Runs,
    /// Their records.
    pub(crate) tasks: Tasks,
    /// Events.
    pub(crate) bus: Bus,
    /// Plans.
    pub(crate) plans: Plans,
    /// Tokens.
    pub(crate) tokens: Tokens,
    /// Terminals.
    pub(crate) ptys: Ptys,
    /// Numbers that are never used twice.
    pub(crate) numbers: Numbers,
    /// The supervisor.
    pub(crate) supervisor: Peer<ToSupervisor>,
    /// Journal and content store.
    pub(crate) journal: Journal,
    /// Closings that could not be written; new executions wait for them.
    pub(crate) unwritten: crate::record::Unwritten,
    /// Sessions that orders to the supervisor will make.
    pub(crate) ordered: HashMap<u64, Sid>,
    /// Host pids of launchers: whose descendants act for their session, not for the human.
    pub(crate) ancestors: HashMap<SessionId, i32>,
    /// Orders to the supervisor, resolved by its answers.
    pub(crate) orders: HashMap<u64, Then<OrderDone>>,
    /// Calls to workers.
    pub(crate) worker_calls: Calls<String>,
    /// Calls to launchers.
    pub(crate) launcher_calls: Calls<LauncherDone>,
    /// Calls to ptyds.
    pub(crate) ptyd_calls: Calls<PtydDone>,
    /// Who waits until a session has its ptyd, resolved by its coming or a timer.
    pub(crate) until_ptyd: Waiting,
    /// Who waits until a session works, resolved by its worker's hello, its failure, its end or a timer.
    pub(crate) until_up: Waiting,
    /// Who waits until an event may be shown, resolved by the mark that is on its way into the database.
    pub(crate) until_shown: Vec<UntilShown>,
    jobs: HashMap<u64, Then<Box<dyn Any + Send>>>,
    timers: Timers<Then<()>>,
    next: u64,
    born: Instant,
    /// Where tasks of edges and sockets send.
    pub(crate) wakes: mpsc::Sender<Wake>,
    done: mpsc::UnboundedSender<JobDone>,
    /// Time a started frame has.
    pub(crate) frame_time: Duration,
    /// Rows that were open when this broker was started and are not reconciled yet.
    pub(crate) open_rows: Vec<Row>,
    /// Sources that are planned, by the number their claim comes under.
    pub(crate) planning: HashMap<u64, crate::answer::Planning>,
    /// Who waits for the end of a task: resolved by it or by a timer.
    pub(crate) task_waiters: Vec<crate::answer::TaskWaiter>,
    /// The kernel stops: no new work.
    pub(crate) draining: bool,
    over: bool,
}

/// What a broker starts from.
pub(crate) struct Parts {
    /// How the kernel was started.
    pub(crate) start: Start,
    /// Rules in force.
    pub(crate) policy: Policy,
    /// Limits in force.
    pub(crate) quotas: Quotas,
    /// What captures may keep.
    pub(crate) captures: Captures,
    /// Journal, open.
    pub(crate) journal: Journal,
    /// Tokens.
    pub(crate) tokens: Tokens,
    /// What an earlier broker left in the database.
    pub(crate) bus: Bus,
    /// Plans in the database.
    pub(crate) plans: Plans,
    /// Numbers in the database.
    pub(crate) numbers: Numbers,
    /// Terminals that were open.
    pub(crate) ptys: Ptys,
    /// Rows that are open.
    pub(crate) open_rows: Vec<Row>,
    /// The supervisor.
    pub(crate) supervisor: Peer<ToSupervisor>,
    /// Where tasks send.
    pub(crate) wakes: mpsc::Sender<Wake>,
    /// Where the journal's thread sends.
    pub(crate) done: mpsc::UnboundedSender<JobDone>,
}

impl Broker {
    /// A broker without sessions and connections.
    pub(crate) fn new(parts: Parts) -> Self {
        let mut broker = Self {
            now: Now { mono: Duration::ZERO, ns: 0 },
            start: parts.start,
            policy: parts.policy,
            quotas: parts.quotas,
            captures: parts.captures,
            clients: Clients::default(),
            sessions: Sessions::default(),
            runs: Runs::default(),
            tasks: Tasks::default(),
            bus: parts.bus,
            plans: parts.plans,
            tokens: parts.tokens,
            ptys: parts.ptys,
            numbers: parts.numbers,
            supervisor: parts.supervisor,
            journal: parts.journal,
            unwritten: crate::record::Unwritten::default(),
            ordered: HashMap::new(),
            ancestors: HashMap::new(),
            orders: HashMap::new(),
            worker_calls: HashMap::new(),
            launcher_calls: HashMap::new(),
            ptyd_calls: HashMap::new(),
            until_up: Vec::new(),
            until_ptyd: Vec::new(),
            until_shown: Vec::new(),
            jobs: HashMap::new(),
            timers: Timers::default(),
            next: 0,
            born: crate::clock::mono(),
            wakes: parts.wakes,
            done: parts.done,
            frame_time: Duration::from_millis(limits::FRAME_TIME_MS),
            open_rows: parts.open_rows,
            planning: HashMap::new(),
            task_waiters: Vec::new(),
            draining: false,
            over: false,
        };
        broker.tick();
        broker
    }

    /// Reads the clocks.
    pub(crate) fn tick(&mut self) {
        self.now = Now { mono: crate::clock::mono() - self.born, ns: crate::clock::wall_ns() };
    }

    /// A number nothing else has.
    pub(crate) fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// The loop ends.
    pub(crate) fn end(&mut self) {
        self.over = true;
    }

    /// The loop has ended or will.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    // ---- timers

    /// Calls `then` after `delay`.
    pub(crate) fn after(&mut self, delay: Duration, then: impl FnOnce(&mut Self) + 'static) -> TimerId {
        self.timers.arm(self.now.mono + delay, Box::new(|broker, ()| then(broker)))
    }

    /// Forgets a timer.
    pub(crate) fn disarm(&mut self, timer: TimerId) {
        self.timers.disarm(timer);
    }

    /// When the next timer is due.
    pub(crate) fn next_due(&mut self) -> Option<Instant> {
        self.timers.next_due().map(|at| self.born + at)
    }

    /// Something is due.
    pub(crate) fn on_due(&mut self) {
        while let Some(then) = self.timers.pop_due(self.now.mono) {
            then(self, ());
        }
    }

    // ---- journal

    /// Runs a writing job on the journal's thread; `then` runs here after its commit.
    pub(crate) fn write<T: Send + 'static>(
        &mut self,
        job: impl FnMut(&mut Store) -> Result<T, JournalError> + Send + 'static,
        then: impl FnOnce(&mut Self, Result<T, JournalError>) + 'static,
    ) {
        let done = self.ticket(then);
        self.journal.write(job, done);
    }

    /// The same for what new work begins with: refused on a full disk, where running work still closes its rows.
    pub(crate) fn begin<T: Send + 'static>(
        &mut self,
        job: impl FnMut(&mut Store) -> Result<T, JournalError> + Send + 'static,
        then: impl FnOnce(&mut Self, Result<T, JournalError>) + 'static,
    ) {
        let done = self.ticket(then);
        self.journal.begin(job, done);
    }

    /// The same, synced to the disk before the answer.
    pub(crate) fn write_synced<T: Send + 'static>(
        &mut self,
        job: impl FnMut(&mut Store) -> Result<T, JournalError> + Send + 'static,
        then: impl FnOnce(&mut Self, Result<T, JournalError>) + 'static,
    ) {
        let done = self.ticket(then);
        self.journal.write_synced(job, done);
    }

    /// Runs a reading job.
    pub(crate) fn read<T: Send + 'static>(
        &mut self,
        job: impl FnMut(&Store) -> Result<T, JournalError> + Send + 'static,
        then: impl FnOnce(&mut Self, Result<T, JournalError>) + 'static,
    ) {
        let done = self.ticket(then);
        self.journal.read(job, done);
    }

    fn ticket<T: Send + 'static>(
        &mut self,
        then: impl FnOnce(&mut Self, Result<T, JournalError>) + 'static,
    ) -> impl FnOnce(Result<T, JournalError>) + Send + 'static {
        let ticket = self.fresh();
        self.jobs.insert(
            ticket,
            Box::new(move |broker, result| {
                // A ticket is resolved by the job it was made for, so the type is that of the job.
                if let Ok(result) = result.downcast::<Result<T, JournalError>>() {
                    then(broker, *result);
                }
            }),
        );
        let done = self.done.clone();
        // The loop may be over; then nobody waits.
        move |result| drop(done.send((ticket, Box::new(result))))
    }

    /// A job is done.
    pub(crate) fn on_job_done(&mut self, ticket: u64, result: Box<dyn Any + Send>) {
        if let Some(then) = self.jobs.remove(&ticket) {
            then(self, result);
        }
    }

    // ---- replies

    /// The attachment of a connection.
    pub(crate) fn attachment(&self, conn: ConnId) -> Option<&Attachment> {
        self.clients.at(conn).and_then(|client| client.attachment())
    }

    /// Answers a request. A denial leaves its row first.
    pub(crate) fn reply(&mut self, ask: Ask, result: Result<String, RpcError>) {
        match result {
            Err(error) if error.is(Code::LeashDenied) || error.is(Code::ApprovalRequired) => {
                self.reply_denial(ask, error, "", serde_json::Value::Array(Vec::new()));
            }
            other => self.send_answer(ask, &other),
        }
    }

    /// Writes the answer's frame to its connection's queue; the request's share of the budget is free.
    pub(crate) fn send_answer(&mut self, ask: Ask, result: &Result<String, RpcError>) {
        if let Some((sid, call)) = ask.up_call {
            return self.told(sid, &call, result.clone());
        }
        let Some(client) = self.clients.at(ask.conn) else { return };
        let mut frame = answer_frame(&ask.id, result);
        if frame.len() > limits::FRAME_BYTES {
            frame = answer_frame(&ask.id, &Err(RpcError::internal("the answer does not fit into a frame")));
        }
        client.out.with(|queue| queue.answer(frame));
    }

    /// Lets a connection end once its answers are written.
    pub(crate) fn finish_connection(&mut self, conn: ConnId) {
        if let Some(client) = self.clients.at(conn) {
            client.out.with(|queue| queue.end(Life::Finishing));
        }
    }
}

/// The frame of an answer: one buffer, one write.
fn answer_frame(id: &str, result: &Result<String, RpcError>) -> Vec<u8> {
    let error;
    let (member, body) = match result {
        Ok(text) => ("result", text.as_str()),
        Err(refusal) => {
            error = crate::tasks::error_json(refusal);
            ("error", error.as_str())
        }
    };
    let mut out = Vec::with_capacity(id.len() + body.len() + 48);
    for part in [r#"{"jsonrpc":"2.0","id":"#, id, ",\"", member, "\":", body, "}\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    out
}

/// Unwraps a result or answers the request with its error and returns.
macro_rules! or_refuse {
    ($broker:expr, $ask:expr, $result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => return $broker.reply($ask, Err(error)),
        }
    };
}
pub(crate) use or_refuse;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_echo_the_id_as_it_was() {
        let frame = answer_frame(r#"{"a":1}"#, &Ok("[1]".to_owned()));
        assert_eq!(frame, b"{\"jsonrpc\":\"2.0\",\"id\":{\"a\":1},\"result\":[1]}\n");
        let frame = answer_frame("null", &Err(RpcError::not_attached()));
        assert_eq!(
            String::from_utf8(frame).expect("text"),
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,\"message\":\"attach to a session first\"}}\n"
        );
    }
}
