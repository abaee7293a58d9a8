//! A session: its state, and the loop that takes what the broker sends.
//!
//! One thread reads the broker's edge and never waits for anything else; every execution and every answer has a thread to
//! itself while it lasts, so that lists, reads and cancels are answered while all executions are busy.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::mpsc::Sender as Orders;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shoal_chan::{Chan, ChanError, Received, Receiver, Sender};
use shoal_eval::cancel::CancelReason;
use shoal_eval::host::Dir;
use shoal_eval::place::{Env, Place};
use shoal_eval::request::{Evaluators, State};
use shoal_eval::stack::{self, Threads, Used};
use shoal_proto::broker_worker::{
    Ack, Cancel, Distrust, Method, OpenRun, Prepare, Setup, ToBroker, ToWorker, WorkerHello,
};
use shoal_proto::hello::{BUILD, EDGE_VERSION, Hello};
use shoal_proto::launcher_worker::RunId;
use shoal_proto::{Bytes, List, Text, Violation};
use shoal_sys::heap;

use crate::answers::{self, Fetched};
use crate::broker_edge::BrokerEdge;
use crate::commands::Commands;
use crate::files::{self, LocalFiles, OpenDir, Recorder};
use crate::host::WorkerHost;
use crate::launcher_edge::LauncherEdge;
use crate::ports::{self, Ports};
use crate::request;
use crate::runs::Runs;
use crate::transcript::Results;
use crate::watches::{self, Watches};

/// Bytes of one stream of a program in memory; more go into the store.
const KEPT: usize = 8 * 1024 * 1024;

/// Variables a session has unless its creator says otherwise: no pager, no prompt, no terminal, no colour.
const DEFAULTS: &[(&str, &str)] =
    &[("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"), ("TERM", "dumb"), ("NO_COLOR", "1")];

/// What an execution waits for after its claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Evaluate.
    Run,
    /// Forget it.
    Discard,
}

/// A session's worker.
pub(crate) struct Session {
    /// What the broker was told of and asked for.
    pub(crate) broker: Arc<BrokerEdge>,
    /// Where programs are asked for.
    pub(crate) launcher: Arc<LauncherEdge>,
    /// Standing interests in resources.
    pub(crate) watches: Watches,
    /// Executions by the broker's numbers.
    pub(crate) runs: Arc<Runs>,
    /// Evaluators over the session's host.
    pub(crate) evaluators: Evaluators,
    /// State of the last commit. Held while a result gets its number and is told, so that numbers follow commits.
    state: Mutex<State>,
    /// Numbered results.
    pub(crate) results: Arc<Results>,
    /// Facts of the session, as the broker told them.
    pub(crate) facts: serde_json::Value,
    orders: Mutex<HashMap<RunId, Orders<Order>>>,
    /// Threads of executions and answers.
    threads: Threads,
    /// Streams that clients fetch.
    pub(crate) streams: Mutex<Vec<Arc<Fetched>>>,
}

/// Runs the session until the launcher or, before its first message, the broker ends.
pub(crate) fn serve(launcher_end: OwnedFd, broker_end: OwnedFd) -> Result<(), ChanError> {
    let (launcher, from_launcher) = LauncherEdge::greet(launcher_end)?;
    let (to_broker, mut from_broker) = Chan::<ToBroker, ToWorker>::from_fd(broker_end)?.split();
    let Received { msg: ToWorker::Setup(setup), .. } = from_broker.recv()? else {
        return Err(Violation::State { what: "a message", state: "awaiting the setup" }.into());
    };
    check(&setup.hello)?;
    let session = Session::new(launcher.clone(), &setup)?;
    let epoch = session.greet(to_broker)?;
    let listener = Arc::clone(&session);
    std::thread::Builder::new().name("broker".into()).spawn(move || listener.read(from_broker, epoch))?;
    let restored = Arc::clone(&session);
    stack::spawn_evaluator("restore", move || watches::restore(&restored))?;
    let teller = Arc::clone(&session);
    let end = launcher.listen(from_launcher, move |_generation, end| adopt(&session, end));
    match end {
        ChanError::Closed => Ok(()),
        other => {
            teller.distrust_launcher(&other);
            Err(other)
        }
    }
}

/// A fresh broker came: its edge replaces the old one.
fn adopt(session: &Arc<Session>, end: OwnedFd) {
    let adopted = (|| {
        let (to_broker, mut from_broker) = Chan::<ToBroker, ToWorker>::from_fd(end)?.split();
        let session = Arc::clone(session);
        std::thread::Builder::new().name("adopt".into()).spawn(move || {
            let first = from_broker.recv();
            if let Ok(Received { msg: ToWorker::Setup(setup), .. }) = first
                && check(&setup.hello).is_ok()
            {
                match session.greet(to_broker) {
                    Ok(epoch) => {
                        session.tell_watches();
                        session.read(from_broker, epoch);
                    }
                    Err(error) => crate::note_edge(&error),
                }
            }
        })?;
        Ok::<(), ChanError>(())
    })();
    if let Err(error) = adopted {
        crate::note_edge(&error);
    }
}

fn check(hello: &Hello) -> Result<(), ChanError> {
    if hello.version == EDGE_VERSION { Ok(()) } else { Err(Violation::Version(hello.version).into()) }
}

impl Session {
    fn new(launcher: Arc<LauncherEdge>, setup: &Setup) -> Result<Arc<Self>, ChanError> {
        let facts: serde_json::Value =
            serde_json::from_slice(setup.state.as_slice()).map_err(|e| Violation::Body(e.to_string()))?;
        let env = environment(setup.env.as_slice().iter().map(Bytes::as_slice));
        let var = |name: &str| env.get(name).and_then(|v| std::str::from_utf8(v).ok()).map(str::to_owned);
        let trash = files::trash_of(|name| var(name).map(Into::into));
        let user = ["USER", "LOGNAME"].into_iter().find_map(var).map(Into::into);
        let cwd = setup.cwd.as_slice();
        let dir: Arc<dyn Dir> = Arc::new(OpenDir::open(cwd).unwrap_or_else(|_| OpenDir::lost(cwd)));
        let state = State::new(Place::new(dir, env));
        let runs = Arc::new(Runs::default());
        let kept = facts["capture_cap"].as_u64().and_then(|cap| usize::try_from(cap).ok()).unwrap_or(KEPT);
        let commands = Commands::new(launcher.clone(), runs.clone(), kept)?;
        let broker = Arc::new(BrokerEdge::default());
        let results = Results::starting_at(setup.next_out, setup.restarted, broker.clone());
        Ok(Arc::new_cyclic(|weak: &std::sync::Weak<Self>| {
            let ports = Arc::new(Ports::new(weak.clone(), ports::record(&facts["config"])));
            let recorder: Arc<dyn Recorder> = ports.clone();
            let files = LocalFiles::new(trash).recorded(recorder);
            let commands = commands.over(ports.clone());
            let host = WorkerHost::session(files, commands, user, ports);
            let (late, progress) = (weak.clone(), weak.clone());
            runs.on_progress(move |run, stdout, stderr| {
                if let Some(session) = progress.upgrade() {
                    session.broker.progress(run, stdout, stderr);
                }
            });
            let evaluators = Evaluators::new(Arc::new(host), move |changes| {
                if let Some(session) = late.upgrade() {
                    session.lock().commit_task(changes);
                }
            });
            Self {
                broker,
                launcher,
                watches: Watches::new(&facts["config"]),
                runs: runs.clone(),
                evaluators,
                state: Mutex::new(state),
                results,
                facts,
                orders: Mutex::default(),
                threads: Threads::default(),
                streams: Mutex::default(),
            }
        }))
    }

    /// The state, for a commit and the numbering that goes with it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state as of the last commit, with the results so far.
    pub(crate) fn snapshot(&self) -> State {
        let mut state = self.lock().clone();
        state.transcript = Some(self.results.snapshot());
        state
    }

    /// An execution that never ran leaves nothing.
    pub(crate) fn forget(&self, run: RunId) {
        self.runs.forget(run);
        self.forget_orders(run);
    }

    /// An execution is over: it takes no more orders.
    pub(crate) fn forget_orders(&self, run: RunId) {
        self.orders().remove(&run);
        self.launcher.forget_run(run);
    }

    fn orders(&self) -> MutexGuard<'_, HashMap<RunId, Orders<Order>>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a fresh end: our hello, what is still open and where the session stands, then the results that are not
    /// recorded. The state is held meanwhile, so no result is told in between.
    fn greet(&self, to_broker: Sender<ToBroker>) -> Result<u64, ChanError> {
        let state = self.lock();
        let unrecorded = self.broker.unrecorded();
        let finished = unrecorded.iter().map(|run| OpenRun {
            run: *run,
            finished: true,
            prepared: false,
            suspended: false,
            deadline_ms: None,
        });
        let started = self.runs.all().into_iter().filter(|(run, _)| !unrecorded.contains(run));
        let live = started.filter(|(_, state)| !state.is_over()).map(|(run, state)| OpenRun {
            run,
            finished: false,
            prepared: !state.is_running(),
            suspended: state.pause.is_set(),
            deadline_ms: state.deadline_ms.get().copied(),
        });
        let open: Vec<OpenRun> = finished.chain(live).collect();
        let hello = WorkerHello {
            hello: Hello { version: EDGE_VERSION, build: Text::cut(BUILD), generation: 0 },
            open: List::new(open).map_err(|e| Violation::Encode(e.to_string()))?,
            // The broker counts on from here: results it has not recorded come after the hello.
            next_out: self.broker.first_unrecorded().unwrap_or_else(|| self.results.next()),
            cwd: Bytes::new(state.place.cwd.path().as_bytes()).map_err(|e| Violation::Encode(e.to_string()))?,
            env: env_list(&state.place.env)?,
        };
        let epoch = self.broker.connect(to_broker);
        let told = self.broker.send(&ToBroker::Hello(hello), &[]);
        let told = told.and_then(|()| self.broker.tell_again(self.results.next()));
        if told.is_err() {
            // Nobody reads from this end: who asks the kernel for something waits for the next one.
            self.broker.disconnect(epoch);
        }
        told.map(|()| epoch)
    }

    /// The launcher broke its edge: its session is not to go on.
    fn distrust_launcher(&self, fault: &ChanError) {
        let what = Text::cut(&fault.to_string());
        if let Err(error) = self.broker.send(&ToBroker::Distrust(Distrust { what }), &[]) {
            crate::note_edge(&error);
        }
    }

    /// A fresh broker is told of the watches, by a thread that can wait for its answer.
    fn tell_watches(self: &Arc<Self>) {
        let session = Arc::clone(self);
        let thread = std::thread::Builder::new().name("watches".into());
        if let Err(error) = thread.spawn(move || session.watches.on_new_broker(&session)) {
            crate::note_edge(&ChanError::from(error));
        }
    }

    /// Takes what the broker sends until it ends.
    fn read(self: &Arc<Self>, mut from_broker: Receiver<ToWorker>, epoch: u64) {
        let end = loop {
            let Received { msg, mut fds } = match from_broker.recv() {
                Ok(received) => received,
                Err(end) => break end,
            };
            if let Err(end) = self.on_broker(msg, fds.pop(), epoch) {
                break end;
            }
        };
        if !matches!(end, ChanError::Closed) {
            crate::note_edge(&end);
        }
        // What was prepared for this broker never runs: the next one knows nothing of it.
        let mut orders = self.orders();
        if self.broker.disconnect(epoch) {
            orders.clear();
        }
    }

    fn on_broker(self: &Arc<Self>, message: ToWorker, fd: Option<OwnedFd>, epoch: u64) -> Result<(), ChanError> {
        match message {
            ToWorker::Setup(_) => return Err(Violation::State { what: "Setup", state: "up" }.into()),
            ToWorker::Prepare(prepare) => self.prepare(prepare, epoch),
            ToWorker::Run(run) => self.order(run.run, Order::Run),
            ToWorker::Discard(run) => self.order(run.run, Order::Discard),
            ToWorker::Cancel(cancel) => self.cancel(cancel),
            ToWorker::Ack(ack) => self.recorded(ack),
            ToWorker::Call(call) => {
                let (session, number) = (Arc::clone(self), call.call);
                let answering = self.threads.run(move || {
                    // The functions of a stream that is pulled may call one another as deep as they like.
                    let used = if call.method == Method::StreamPull { Used::Deep } else { Used::Shallow };
                    answers::answer(&session, call, epoch);
                    if session.results.take_read_back() {
                        heap::give_back();
                    }
                    used
                });
                if let Err(error) = answering {
                    answers::answer_without_thread(self, number, epoch, &error);
                }
            }
            ToWorker::Told(answer) => self.broker.told(answer, fd),
            ToWorker::Freeze(run) => self.pause(run.run, true),
            ToWorker::Thaw(run) => self.pause(run.run, false),
        }
        Ok(())
    }

    fn prepare(self: &Arc<Self>, prepare: Prepare, epoch: u64) {
        let (orders, taken) = std::sync::mpsc::channel();
        let run = prepare.run;
        let state = self.runs.enter(run);
        if let Some(ms) = prepare.deadline_ms {
            // A run is prepared once.
            let _first: Result<(), u64> = state.deadline_ms.set(ms);
        }
        self.orders().insert(run, orders);
        let session = Arc::clone(self);
        let started = self.threads.run(move || {
            request::serve(&session, prepare, epoch, &state, &taken);
            state.used()
        });
        if let Err(error) = started {
            self.forget(run);
            if let Err(error) = request::refuse(self, run, epoch, &error) {
                crate::note_edge(&error);
            }
        }
    }

    /// An order for a run that takes none any more is late, and nothing else. A run counts as running from here on: a
    /// broker that comes now must not hold it for one that never ran.
    fn order(&self, run: RunId, order: Order) {
        let orders = self.orders();
        let Some(waiting) = orders.get(&run) else { return };
        if order == Order::Run
            && let Some(state) = self.runs.find(run)
        {
            state.set_running();
        }
        let _late: Result<(), _> = waiting.send(order);
    }

    /// The end of a run is recorded: what need not stay for it is let go, by a thread that may take its time.
    fn recorded(&self, ack: Ack) {
        self.runs.recorded(ack.run, ack.kept);
        let n = self.broker.recorded(ack.run).filter(|_| ack.stored);
        let loose = n.map(|n| self.results.stored(n)).unwrap_or_default();
        if loose.is_empty() {
            return;
        }
        let dropped = self.threads.run(move || {
            drop(loose);
            heap::give_back();
            Used::Shallow
        });
        // Without a thread they were dropped here.
        if let Err(error) = dropped {
            crate::note_edge(&error.into());
        }
    }

    fn cancel(&self, cancel: Cancel) {
        self.launcher.mark_climbed(cancel.run);
        if let Some(state) = self.runs.find(cancel.run) {
            state.cancel.cancel(if cancel.deadline { CancelReason::Deadline } else { CancelReason::Cancelled });
        }
    }

    fn pause(&self, run: RunId, paused: bool) {
        if let Some(state) = self.runs.find(run) {
            state.pause.set(paused);
        }
    }
}

/// The environment of a session: what its creator gave, and the defaults that are not set.
fn environment<'a>(pairs: impl Iterator<Item = &'a [u8]>) -> Env {
    let defaults = DEFAULTS.iter().map(|(name, value)| ((*name).into(), value.as_bytes().into()));
    let given = pairs.filter_map(|pair| {
        let at = pair.iter().position(|b| *b == b'=').filter(|at| *at > 0)?;
        let (name, value) = pair.split_at(at);
        Some((std::str::from_utf8(name).ok()?.into(), value.get(1..).unwrap_or_default().into()))
    });
    // The later of two equal names wins.
    defaults.chain(given).collect()
}

/// An environment as a message carries it.
pub(crate) fn env_list(env: &Env) -> Result<List<Bytes<131_072>, 65_536>, Violation> {
    let pairs = env.iter().map(|(name, value)| Bytes::new([name.as_bytes(), b"=", value].concat()));
    let pairs = pairs.collect::<Result<Vec<_>, _>>().map_err(|e| Violation::Encode(e.to_string()))?;
    List::new(pairs).map_err(|e| Violation::Encode(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_give_way() {
        let env = environment([&b"TERM=xterm"[..], b"A=b=c", b"=bad", b"none"].into_iter());
        let var = |name: &str| env.get(name).map(|v| v.to_vec());
        assert_eq!(var("TERM").as_deref(), Some(&b"xterm"[..]));
        assert_eq!(var("PAGER").as_deref(), Some(&b"cat"[..]));
        assert_eq!(var("A").as_deref(), Some(&b"b=c"[..]));
        assert_eq!(env.size(), DEFAULTS.len() + 1);
    }
}
