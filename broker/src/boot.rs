//! From the supervisor's first words to a broker that serves: journal open, rows and sessions taken over, then the listener.

use std::fs::File;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsFd as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use shoal_chan::{Chan, ChanError};
use shoal_journal::{Journal, Query, Row, Settings, Store};
use shoal_leash::Sections;
use shoal_proto::supervisor_broker::{Start, ToBroker, ToSupervisor};
use tokio::net::UnixListener;
use tokio::sync::{Semaphore, mpsc};

use crate::answer::read_sections;
use crate::broker::{Broker, Parts};
use crate::bus::{Bus, RESERVE};
use crate::capture::{Caps, Captures};
use crate::clients::accept;
use crate::edge::{Peer, hello};
use crate::numbers::{Numbers, PTYS, TASKS};
use crate::plans::Plans;
use crate::policy::Policy;
use crate::ptys::Ptys;
use crate::publish::is_of_object;
use crate::quotas::{Quota, Quotas};
use crate::sessions::Stage;
use crate::tokens::Tokens;
use crate::wake::{self, Wake};

/// The supervisor speaks first and at once; a silence means it is gone.
const START_WITHIN: Duration = Duration::from_secs(10);
/// Adopted workers say what they have within this; rows of those that do not are closed.
const RECONCILE_WITHIN: Duration = Duration::from_secs(10);
/// Plans read at start: those of two days at the quota of many owners.
const MAX_PLANS: u32 = 65_536;

/// What the supervisor hands over.
struct Given {
    start: Start,
    listener: OwnedFd,
    dir: OwnedFd,
    sections: Sections,
    edge: Chan<ToSupervisor, ToBroker>,
}

/// Newest rows of terminals in which those that are still open are looked for; the oldest of very many are forgotten.
const PTY_ROWS: u64 = 10_000;

/// What the database holds for a new broker.
struct Left {
    marks: Vec<(String, i64)>,
    outs: Vec<(String, i64)>,
    tasks: i64,
    ptys: i64,
    plans: Vec<shoal_journal::PlanRecord>,
    durable: Vec<(String, String, i64)>,
    open_rows: Vec<shoal_journal::Row>,
    pty_rows: Vec<shoal_journal::Row>,
    cas_bytes: u64,
}

/// Serves until the kernel is over.
pub(crate) async fn serve(edge: OwnedFd) -> io::Result<()> {
    let given = meet_supervisor(edge)?;
    let dir = state_dir(&given)?;
    // Before the first thread: from here on there is the state directory, `/proc` to know peers, and what was lent.
    #[cfg(target_os = "linux")]
    shoal_jail::confine::broker(given.dir.as_fd()).map_err(|failed| io::Error::other(failed.to_string()))?;
    let full = given.sections.settings.durability_full;
    let journal = Journal::open(&dir, Settings { full, without_reserve: given.start.state_dir.is_empty() })
        .map_err(|error| io::Error::other(format!("journal: {error}")))?;
    let adopted = given.start.adopt > 0;
    let left = journal
        .wait(move |store| left(store, adopted))
        .map_err(|error| io::Error::other(format!("journal: {error}")))?;
    let tokens = if given.start.state_dir.is_empty() { Tokens::none() } else { Tokens::load(&dir)? };
    let (wakes, woken) = mpsc::channel(wake::QUEUE);
    let (done, jobs) = mpsc::unbounded_channel();
    let (quotas, caps, frame_time) = quotas(&given.sections);
    let places = usize::try_from(quotas.max(Quota::Unattached)).unwrap_or(16);
    let loaded_ns = crate::clock::wall_ns();
    let supervisor = Peer::over(given.edge, 0, &wakes, |_, arrived| Wake::Supervisor(arrived))?;
    let uid = given.start.uid;
    let mut broker = Broker::new(Parts {
        start: given.start,
        policy: Policy { sections: given.sections, loaded_ns, rejected: None },
        quotas,
        captures: Captures::new(caps, left.cas_bytes),
        journal,
        tokens,
        bus: bus(&left),
        plans: Plans::of(&left.plans),
        numbers: numbers(&left),
        ptys: Ptys::after(&left.pty_rows),
        open_rows: left.open_rows,
        supervisor,
        wakes: wakes.clone(),
        done,
    });
    broker.frame_time = frame_time.unwrap_or(broker.frame_time);
    broker.take_over(adopted);
    let listener = std::os::unix::net::UnixListener::from(given.listener);
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    tokio::task::spawn_local(accept(listener, uid, Arc::new(Semaphore::new(places)), wakes));
    broker.supervisor.send(ToSupervisor::Ready(hello(0)));
    wake::run(&mut broker, woken, jobs).await;
    Ok(())
}

/// Says hello and takes what comes before everything else.
fn meet_supervisor(edge: OwnedFd) -> io::Result<Given> {
    let mut edge: Chan<ToSupervisor, ToBroker> = Chan::from_fd(edge)?;
    let broken = |error: ChanError| io::Error::other(format!("supervisor: {error}"));
    edge.send(&ToSupervisor::Hello(hello(0)), &[]).map_err(broken)?;
    let first = edge.recv_deadline(START_WITHIN).map_err(broken)?;
    let mut fds = first.fds.into_iter();
    let (ToBroker::Start(start), Some(listener), Some(dir)) = (first.msg, fds.next(), fds.next()) else {
        return Err(io::Error::other("supervisor: the first message is no start"));
    };
    let second = edge.recv_deadline(START_WITHIN).map_err(broken)?;
    let (ToBroker::Sections(_), Some(memfd)) = (second.msg, second.fds.into_iter().next()) else {
        return Err(io::Error::other("supervisor: the second message is no policy"));
    };
    let sections = read_sections(&memfd)?;
    Ok(Given { start, listener, dir, sections, edge })
}

/// The path of the state directory, which must lead to the directory the supervisor opened. SQLite follows no symbolic
/// link, so the link of `/proc` itself is no path to work with.
fn state_dir(given: &Given) -> io::Result<PathBuf> {
    let path = match given.start.state_dir.as_str() {
        "" => std::fs::read_link(format!("/proc/self/fd/{}", given.dir.as_raw_fd()))?,
        path => PathBuf::from(path),
    };
    let (named, opened) = (std::fs::metadata(&path)?, File::from(given.dir.try_clone()?).metadata()?);
    if (named.dev(), named.ino()) != (opened.dev(), opened.ino()) {
        return Err(io::Error::other(format!("{} is not the state directory that was opened", path.display())));
    }
    Ok(path)
}

fn quotas(sections: &Sections) -> (Quotas, Caps, Option<Duration>) {
    let (mut quotas, mut caps) = (Quotas::default(), Caps::default());
    let mut frame_time = None;
    for (name, value) in sections.settings.quotas.as_slice() {
        match name.as_str() {
            "frame_read_timeout_ms" => frame_time = Some(Duration::from_millis(*value)),
            name if caps.set(name, *value) => {}
            name => {
                if let Err(unknown) = quotas.set(name, *value) {
                    crate::log::line(format_args!("unknown limit {unknown} ignored"));
                }
            }
        }
    }
    (quotas, caps, frame_time)
}

/// Reads what an earlier broker left, and reserves the first block of every number that goes on: all of it is synced
/// before the first client is met. Channels of tasks and terminals end with the kernel.
fn left(store: &mut Store, adopted: bool) -> Result<Left, shoal_journal::JournalError> {
    let block = i64::try_from(RESERVE).unwrap_or(i64::MAX);
    let mut marks = Vec::new();
    for (name, mark) in store.counters("event/")? {
        let counter = format!("event/{name}");
        if !adopted && parts(&name).is_some_and(|(_, channel)| is_of_object(channel)) {
            store.delete_counter(&counter)?;
            continue;
        }
        store.raise_counter(&counter, mark.saturating_add(block))?;
        marks.push((name, mark));
    }
    let (tasks, ptys) = (store.counter(TASKS)?, store.counter(PTYS)?);
    store.raise_counter(TASKS, tasks.saturating_add(block))?;
    store.raise_counter(PTYS, ptys.saturating_add(block))?;
    let mut durable = Vec::new();
    for (owner, channel) in store.durable_channels()? {
        let next = store.newest_event(&owner, &channel)?.map_or(0, |newest| newest.saturating_add(1));
        durable.push((owner, channel, next));
    }
    Ok(Left {
        cas_bytes: store.cas_bytes()?,
        marks,
        outs: store.counters("out/")?,
        tasks,
        ptys,
        plans: store.plans(None, MAX_PLANS)?,
        durable,
        open_rows: store.open_rows()?,
        pty_rows: store.query(&Query { kinds: vec!["pty".to_owned()], limit: PTY_ROWS, ..Query::default() })?,
    })
}

/// The two parts of a counter's name.
fn parts(name: &str) -> Option<(&str, &str)> {
    name.split_once('\0')
}

fn bus(left: &Left) -> Bus {
    let number = |n: i64| u64::try_from(n).unwrap_or(0);
    let rings = left
        .marks
        .iter()
        .filter_map(|(name, mark)| parts(name).map(|(o, c)| ((Rc::from(o), Rc::from(c)), number(*mark))));
    let durable = left.durable.iter().map(|(o, c, next)| ((Rc::from(o.as_str()), Rc::from(c.as_str())), number(*next)));
    Bus::resume(rings.chain(durable))
}

fn numbers(left: &Left) -> Numbers {
    let outs = left.outs.iter().filter_map(|(name, out)| {
        parts(name).map(|(owner, session)| ((owner.to_owned(), session.to_owned()), u64::try_from(*out).unwrap_or(0)))
    });
    Numbers::above(left.tasks, left.ptys, outs)
}

impl Broker {
    /// Rows of work that is gone are closed; those of adopted sessions wait for what their workers say.
    fn take_over(&mut self, adopted: bool) {
        let first = self.start.restarts == 0;
        self.note_kernel(if first { "start" } else { "recovery" }, None);
        if !first {
            self.kernel_event("restarted", Some("broker"), None);
        }
        let plans: Vec<Rc<str>> = self.plans.oldest_first().iter().map(|plan| plan.reference.clone()).collect();
        plans.iter().for_each(|reference| self.await_expiry(reference));
        if adopted {
            self.after(RECONCILE_WITHIN, Self::close_rows_left);
            self.with_launchers();
        } else {
            self.close_rows_left();
        }
    }

    fn close_rows_left(&mut self) {
        // The worker of a frozen session will say what it has when it is thawed.
        let is_frozen = |row: &Row| {
            let mut silent = self.sessions.iter().filter(|session| session.frozen && session.stage != Stage::Up);
            silent.any(|session| *session.owner == *row.owner && *session.name == *row.session)
        };
        let left: Vec<Row> = self.open_rows.extract_if(.., |row| !is_frozen(row)).collect();
        for row in left {
            self.close_interrupted(&row);
        }
    }
}
