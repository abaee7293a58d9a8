//! A launcher that is born and confined like an honest one and says what none says, to each of its three neighbours.
//!
//! In a session with a network it is the session's worker too, and a run names the violation. In one without, a real
//! worker runs, and the first program it asks for does.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;

use shoal_chan::Received;
use shoal_proto::broker_launcher::{self, RunOrder};
use shoal_proto::broker_worker::ToWorker as WorkerOrder;
use shoal_proto::hello::SessionRole;
use shoal_proto::launcher_worker::{ToLauncher as FromWorker, ToWorker};
use shoal_proto::section::{Network, Section};
use shoal_proto::supervisor_broker::Ping;
use shoal_proto::supervisor_launcher::{BirthFailed, RoleStarted, ToLauncher, ToSupervisor};
use shoal_proto::{Message, Text};
use shoal_sys::poll::{Ready, poll};
use shoal_sys::spawn::{Command, Program};

use super::{Raw, Worker, frames, hello, on_prepare};

/// Frames that are none; every edge has them.
const FRAMES: &[&str] = &[
    "magic",
    "version",
    "reserved",
    "flag",
    "type-unknown",
    "length-more",
    "length-huge",
    "trailing-byte",
    "short-header",
    "random",
    "sequence-again",
    "sequence-gap",
];
/// Well-formed messages to the supervisor that come at the wrong moment or are about the wrong role.
const TO_SUPERVISOR: &[&str] = &["ready-again", "born-again", "ended-early", "role-of-itself"];
/// The same to the broker.
const TO_BROKER: &[&str] = &["descriptor-smuggled", "answers-to-everybody", "hang-up"];
/// The same to the worker.
const TO_WORKER: &[&str] = &["descriptor-smuggled", "hello-again"];
/// Numbers of calls that others may have open.
const GUESSES: u64 = 20_000;

/// Violations of a launcher by the edge: supervisor, broker, worker.
pub fn by_launcher() -> impl Iterator<Item = (&'static str, &'static str)> {
    let edges = [("supervisor", TO_SUPERVISOR), ("broker", TO_BROKER), ("worker", TO_WORKER)];
    edges.into_iter().flat_map(|(edge, words)| FRAMES.iter().chain(words).map(move |name| (edge, *name)))
}

type SupervisorEdge = Raw<ToSupervisor, ToLauncher>;
type BrokerEdge = Raw<broker_launcher::ToBroker, broker_launcher::ToLauncher>;

/// Is born, confines itself, and serves until the supervisor ends it.
pub fn launcher() -> io::Result<ExitCode> {
    let mut supervisor: SupervisorEdge = Raw::new(shoal_sys::fd::inherited(3)?)?;
    let images = [shoal_sys::fd::inherited(4)?, shoal_sys::fd::inherited(5)?];
    let Received { msg: ToLauncher::Birth(birth), fds } = supervisor.recv_with_fds()? else {
        return Err(io::Error::other("no birth"));
    };
    let mut fds = fds.into_iter();
    let mut next = || fds.next().ok_or_else(|| io::Error::other("too few descriptors"));
    let (section, to_broker, for_worker) = (next()?, next()?, next()?);
    let section = Section::decode(&shoal_sys::memfd::read_sealed(&section, 8 << 20)?)
        .map_err(|violation| io::Error::other(violation.to_string()))?;
    let images: Vec<BorrowedFd<'_>> = images.iter().map(AsFd::as_fd).collect();
    shoal_jail::confine::session(&birth.domain, &images).map_err(|failed| io::Error::other(failed.to_string()))?;
    let (ours, theirs) = shoal_sys::socket::pair(shoal_sys::socket::Carrier::NATIVE)?;
    let mut broker: BrokerEdge = Raw::new(to_broker)?;
    if section.network == Network::None {
        let worker = images.first().copied().ok_or_else(|| io::Error::other("no image"))?;
        let mut edge: Raw<ToWorker, FromWorker> = Raw::new(ours)?;
        let pid = start(worker, theirs, for_worker)?;
        let FromWorker::Hello(_) = edge.recv()? else { return Err(io::Error::other("no hello")) };
        edge.send(&ToWorker::Hello(hello()))?;
        ready(&mut supervisor, &mut broker, pid)?;
        serve_worker(&mut supervisor, &mut broker, &mut edge)
    } else {
        ready(&mut supervisor, &mut broker, shoal_sys::process::pid())?;
        let worker = Worker::greet(theirs, for_worker)?;
        serve_runs(supervisor, broker, worker)
    }
}

fn start(image: BorrowedFd<'_>, launcher: OwnedFd, broker: OwnedFd) -> io::Result<i32> {
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    let fds = vec![stdin.as_fd(), stdout.as_fd(), stderr.as_fd(), launcher.as_fd(), broker.as_fd()];
    let command = Command::new(Program::Fd(image), vec![c"shoal-worker".to_owned()]).fds(fds);
    command.spawn().map(|child| child.pid).map_err(|failed| io::Error::from_raw_os_error(failed.errno))
}

fn ready(supervisor: &mut SupervisorEdge, broker: &mut BrokerEdge, worker: i32) -> io::Result<()> {
    supervisor.send(&ToSupervisor::RoleStarted(RoleStarted {
        role: SessionRole::Worker,
        pid: worker,
        generation: 1,
    }))?;
    supervisor.send(&ToSupervisor::Ready(hello()))?;
    broker.send(&broker_launcher::ToBroker::Hello(hello()))
}

/// Whether the supervisor has ordered the end, once anything that is ready was taken.
fn is_over(supervisor: &mut SupervisorEdge) -> bool {
    match supervisor.recv() {
        Ok(ToLauncher::Ping(ping)) => supervisor.send(&ToSupervisor::Pong(ping)).is_err(),
        Ok(ToLauncher::Kill(_)) | Err(_) => true,
        Ok(_) => false,
    }
}

/// As the session's worker: a run names the edge and the violation.
fn serve_runs(mut supervisor: SupervisorEdge, broker: BrokerEdge, mut worker: Worker) -> io::Result<ExitCode> {
    let mut broker = Some(broker);
    let mut sources = std::collections::BTreeMap::new();
    loop {
        let ready = poll(&[(supervisor.as_fd(), Ready::READ), (worker.broker.as_fd(), Ready::READ)], None)?;
        if ready.first().is_some_and(|ready| ready.any()) && is_over(&mut supervisor) {
            return Ok(ExitCode::SUCCESS);
        }
        if !ready.get(1).is_some_and(|ready| ready.any()) {
            continue;
        }
        match worker.recv()? {
            WorkerOrder::Prepare(prepare) => {
                let source = prepare.src.to_string();
                on_prepare(&mut worker, &source, prepare.run)?;
                sources.insert(prepare.run, source);
            }
            WorkerOrder::Run(run) => {
                let source = sources.remove(&run.run).unwrap_or_default();
                match source.strip_prefix("violate ").and_then(|words| words.split_once(' ')) {
                    Some(("supervisor", name)) => to_supervisor(&mut supervisor, name)?,
                    Some((_broker, "hang-up")) => broker = None,
                    Some((_broker, name)) => broker.as_mut().map_or(Ok(()), |broker| to_broker(broker, name))?,
                    None if source == "hang" => {}
                    None => worker.finish(run.run, &source)?,
                }
            }
            _ => {}
        }
    }
}

fn to_supervisor(supervisor: &mut SupervisorEdge, name: &str) -> io::Result<()> {
    let message = match name {
        "ready-again" => ToSupervisor::Ready(hello()),
        "born-again" => ToSupervisor::BirthFailed(BirthFailed { step: Text::default(), errno: 0 }),
        "ended-early" => ToSupervisor::Ended(Ping { n: 0 }),
        "role-of-itself" => {
            ToSupervisor::RoleStarted(RoleStarted { role: SessionRole::Launcher, pid: 1, generation: 1 })
        }
        _ => return frame(supervisor, name, &ToSupervisor::Pong(Ping { n: 0 })),
    };
    supervisor.send(&message)
}

fn to_broker(broker: &mut BrokerEdge, name: &str) -> io::Result<()> {
    let done = |call| broker_launcher::ToBroker::Done(RunOrder { call, run: 1 });
    match name {
        "answers-to-everybody" => (0..GUESSES).try_for_each(|call| broker.send(&done(call))),
        _ => frame(broker, name, &done(0)),
    }
}

/// Beside a real worker: the program it asks for names the violation in its arguments.
fn serve_worker(
    supervisor: &mut SupervisorEdge,
    broker: &mut BrokerEdge,
    worker: &mut Raw<ToWorker, FromWorker>,
) -> io::Result<ExitCode> {
    loop {
        let edges = [supervisor.as_fd(), broker.as_fd(), worker.as_fd()].map(|fd| (fd, Ready::READ));
        let ready = poll(&edges, None)?;
        let is_ready = |at: usize| ready.get(at).is_some_and(|ready| ready.any());
        let (orders, asked) = (is_ready(1), is_ready(2));
        if is_ready(0) && is_over(supervisor) {
            return Ok(ExitCode::SUCCESS);
        }
        if orders {
            broker.recv()?;
        }
        // The worker ends when it has had enough; its launcher does not.
        let Some(Ok(message)) = asked.then(|| worker.recv()) else {
            if asked {
                return wait_for_the_end(supervisor);
            }
            continue;
        };
        if let FromWorker::Spawn(spawn) = message {
            let words = spawn.argv.as_slice().iter().map(|word| String::from_utf8_lossy(word.as_slice()).into_owned());
            let words: Vec<String> = words.collect();
            let name =
                words.iter().find_map(|word| word.split_once("violate ")).map_or("", |(_before, name)| name.trim());
            match name {
                "hello-again" => worker.send(&ToWorker::Hello(hello()))?,
                _ => frame(worker, name, &ToWorker::Hello(hello()))?,
            }
        }
    }
}

fn wait_for_the_end(supervisor: &mut SupervisorEdge) -> io::Result<ExitCode> {
    while !is_over(supervisor) {}
    Ok(ExitCode::SUCCESS)
}

fn frame<Tx: Message, Rx: Message>(edge: &mut Raw<Tx, Rx>, name: &str, honest: &Tx) -> io::Result<()> {
    if frames::send_as(edge, name, honest)? { Ok(()) } else { Err(io::Error::other(format!("no violation {name}"))) }
}
