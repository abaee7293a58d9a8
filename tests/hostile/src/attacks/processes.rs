//! On memory, signals and limits of processes outside, and of the session's own roles.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use rustix::process::{Pid, Uid};
use shoal_sys::attack as sys;
use shoal_sys::rlimit::{Limit, set_limits};

use crate::{Attack, Targets, attack};

/// Threads of one process that a session could start at most, with room to spare.
const CROWD: usize = 6000;
/// More than the memory limit of the scoped section.
const HEAP: usize = 2 << 30;

pub(super) const ATTACKS: &[Attack] = &[
    attack("A01-memory", |t| sys::read_memory(t.human, t.address).map(drop)),
    attack("A01-memory-of-supervisor", |t| read(t.supervisor, "mem")),
    attack("A01-trace", |t| sys::seize(t.human)),
    attack("A01-trace-broker", |t| sys::seize(t.broker)),
    attack("A02-cwd", |t| std::fs::read_dir(proc(t.human, "cwd")).map(drop)),
    attack("A02-environ", |t| read(t.human, "environ")),
    attack("A02-environ-of-broker", |t| read(t.broker, "environ")),
    attack("A02-environ-of-supervisor", |t| read(t.supervisor, "environ")),
    attack("A02-exe", |t| read(t.human, "exe")),
    attack("A02-fd", |t| std::fs::read_link(proc(t.human, "fd/0")).map(drop)),
    attack("A02-maps", |t| read(t.human, "maps")),
    attack("A02-mem", |t| File::open(proc(t.human, "mem")).map(drop)),
    attack("A02-root", |t| std::fs::read_dir(proc(t.human, "root")).map(drop)),
    attack("A03-everybody", |_| sys::signal_everybody(libc::SIGWINCH)),
    attack("A03-kill", |t| sent(shoal_sys::process::kill(t.human, 0))),
    attack("A03-kill-broker", |t| sent(shoal_sys::process::kill(t.broker, 0))),
    attack("A03-kill-supervisor", |t| sent(shoal_sys::process::kill(t.supervisor, 0))),
    attack("A03-pidfd", |t| sent(shoal_sys::pidfd::Pidfd::open(t.human)?.signal(libc::SIGURG))),
    attack("A03-queue", |t| sys::queue_signal(t.human, 0)),
    attack("A03-thread", |t| sys::signal_thread(t.human, 0)),
    attack("A04-sigio", sigio),
    attack("A05-descriptor", |t| sys::take_descriptor(t.human, 0)),
    attack("A06-compare", |t| sys::compare(t.human)),
    attack("A07-limit-cpu", |t| sys::set_limit_of(t.human, libc::RLIMIT_CPU)),
    attack("A07-limit-file-size", |t| sys::set_limit_of(t.human, libc::RLIMIT_FSIZE)),
    attack("A07-limit-of-broker", |t| sys::set_limit_of(t.broker, libc::RLIMIT_NOFILE)),
    attack("A07-limit-open-files", |t| sys::set_limit_of(t.human, libc::RLIMIT_NOFILE)),
    attack("A08-affinity", affinity),
    attack("A08-io", |t| sys::io_priority(t.human)),
    attack("A08-nice", |t| Ok(rustix::process::setpriority_process(Pid::from_raw(t.human), 10)?)),
    attack("A08-nice-of-everybody", nice_everybody),
    attack("A08-scheduler", |t| sys::scheduler(t.human)),
    attack("A09-oom", |t| std::fs::write(proc(t.human, "oom_score_adj"), "0")),
    attack("A11-memory-of-launcher", |_| sys::seize(launcher())),
    attack("A11-memory-of-worker", |_| sys::seize(worker()?)),
    attack("A13-leave", |t| OpenOptions::new().write(true).open(t.group.join("cgroup.procs"))?.write_all(b"0")),
    attack("A14-crowd", |_| crowd()),
    attack("A15-heap", |_| heap()),
    attack("A17-core", |_| set_limits(Limit::Core, 1 << 20, 1 << 20)),
    attack("A32-processes", |t| std::fs::metadata(proc(t.human, "")).map(drop)),
];

fn proc(pid: i32, name: &str) -> String {
    format!("/proc/{pid}/{name}")
}

/// Opening alone is not reading: for some files the check is at the first byte. Memory is read where there is nothing,
/// which an open file says with another error than a closed door.
fn read(pid: i32, name: &str) -> io::Result<()> {
    let mut file = File::open(proc(pid, name))?;
    match file.read(&mut [0; 1]) {
        Ok(0) => Err(io::Error::other("empty")),
        Err(error) if name == "mem" && error.raw_os_error() == Some(libc::EIO) => Ok(()),
        other => other.map(drop),
    }
}

fn sent(result: io::Result<bool>) -> io::Result<()> {
    if result? { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
}

/// The launcher of this session, an ancestor of everything in it; outside, the parent is as good.
fn launcher() -> i32 {
    let own = shoal_sys::procfs::process(shoal_sys::process::pid());
    let parent = own.ok().flatten().map_or(0, |process| process.ppid);
    let mut pid = parent;
    while let Ok(Some(process)) = shoal_sys::procfs::process(pid) {
        if process.comm == "shoal-launcher" {
            return pid;
        }
        pid = process.ppid;
    }
    parent
}

/// The worker of this session, a child of the launcher.
fn worker() -> io::Result<i32> {
    let all = shoal_sys::procfs::processes()?;
    let found = all.iter().find(|process| process.ppid == launcher() && process.comm == "shoal-worker");
    found.map(|process| process.pid).ok_or_else(|| io::Error::other("no worker"))
}

/// The signal of a ready socket, sent to somebody else.
fn sigio(targets: &Targets) -> io::Result<()> {
    let (ours, theirs) = UnixStream::pair()?;
    sys::own_signals(&ours, targets.human)?;
    io::Write::write_all(&mut &theirs, b"x")
}

fn affinity(targets: &Targets) -> io::Result<()> {
    let all = rustix::thread::sched_getaffinity(None)?;
    Ok(rustix::thread::sched_setaffinity(Pid::from_raw(targets.human), &all)?)
}

/// Asks for the least niceness that any process of the user has: the human's program is nicer, and the refusal to make it
/// less so tells that it was reached. Nobody becomes nicer by it, who may be a person who runs these tests.
fn nice_everybody(_targets: &Targets) -> io::Result<()> {
    let own = Uid::from_raw(shoal_sys::process::uid());
    let least = rustix::process::getpriority_user(own)?;
    match rustix::process::setpriority_user(own, least) {
        Err(rustix::io::Errno::ACCESS) => Ok(()),
        Ok(()) => Err(io::Error::other("missed")),
        Err(error) => Err(error.into()),
    }
}

/// Starts threads until there can be no more.
fn crowd() -> io::Result<()> {
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Arc::new(std::sync::Mutex::new(held));
    let mut threads = Vec::new();
    let mut refused = Ok(());
    for _ in 0..CROWD {
        let held = held.clone();
        // Until the sender is gone.
        let wait = move || held.lock().is_ok_and(|held| held.recv().is_ok());
        match std::thread::Builder::new().stack_size(16 * 1024).spawn(wait) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                refused = Err(error);
                break;
            }
        }
    }
    drop(hold);
    for thread in threads {
        thread.join().map_err(|_panic| io::Error::other("a thread panicked"))?;
    }
    refused
}

fn heap() -> io::Result<()> {
    let mut heap: Vec<u8> = Vec::new();
    heap.try_reserve_exact(HEAP).map_err(|_full| io::Error::from_raw_os_error(libc::ENOMEM))
}
