//! A launcher under test and the peers that the test plays.

use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use shoal_chan::{Chan, ChanError};
use shoal_proto::hello::{BUILD, EDGE_VERSION, Hello};
use shoal_proto::launcher_worker::{CommandId, Exited, Receipt, RunId, Spawn};
use shoal_proto::section::Section;
use shoal_proto::supervisor_broker::Limits;
use shoal_proto::supervisor_launcher::Birth;
use shoal_proto::{
    Bytes, List, Text, broker_launcher as bl, launcher_ptyd as lp, launcher_worker as lw, supervisor_launcher as sl,
};
use shoal_sys::spawn::{Command, Program};
use shoal_sys::{fd, memfd, process, socket};

/// Far beyond anything a healthy launcher needs; only a hang meets it.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

pub(crate) type Worker = Chan<lw::ToLauncher, lw::ToWorker>;

/// A launcher and every edge it has.
pub(crate) struct Session {
    pub(crate) pid: i32,
    pub(crate) supervisor: Chan<sl::ToLauncher, sl::ToSupervisor>,
    pub(crate) broker: Chan<bl::ToLauncher, bl::ToBroker>,
    pub(crate) worker: Worker,
    /// The far end of the worker's descriptor 4: closing it ends the fake worker.
    pub(crate) worker_life: OwnedFd,
    next: CommandId,
}

/// Both output streams of a command.
pub(crate) struct Output {
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

pub(crate) fn hello(generation: u32) -> Hello {
    Hello { version: EDGE_VERSION, build: Text::cut(BUILD), generation }
}

fn fake_role() -> PathBuf {
    let launcher = Path::new(env!("CARGO_BIN_EXE_shoal-launcher"));
    launcher.with_file_name("examples").join("fake_worker")
}

impl Session {
    /// A session whose worker has said hello, under a section that allows everything.
    pub(crate) fn start() -> Self {
        Self::start_under(&Section::default())
    }

    pub(crate) fn start_under(section: &Section) -> Self {
        let role = fd::open_program(&fake_role()).expect("the example is built");
        let image = fd::open_program(Path::new(env!("CARGO_BIN_EXE_shoal-launcher"))).expect("the launcher is built");
        let null = fd::null().expect("the null device");
        let (ctl, far_ctl) = socket::pair(socket::Carrier::NATIVE).expect("a pair");
        let (broker, far_broker) = socket::pair(socket::Carrier::NATIVE).expect("a pair");
        let (worker_life, far_worker) = socket::pair(socket::Carrier::NATIVE).expect("a pair");
        let stderr = std::io::stderr();
        let fds = vec![null.as_fd(), null.as_fd(), stderr.as_fd(), far_ctl.as_fd(), role.as_fd(), role.as_fd()];
        let launcher = Command::new(Program::Fd(image.as_fd()), vec![c"shoal-launcher".to_owned()]).fds(fds);
        let pid = launcher.spawn().expect("started").pid;
        drop(far_ctl);
        let mut supervisor = Chan::from_fd(ctl).expect("a socket");
        let section = memfd::sealed("section", &section.encode().expect("encodes")).expect("a memfd");
        let birth = Birth {
            hello: hello(1),
            limits: Limits::default(),
            roots: List::default(),
            domain: shoal_proto::supervisor_launcher::Domain::default(),
            memory_events: false,
        };
        let fds = [section.as_fd(), far_broker.as_fd(), far_worker.as_fd()];
        supervisor.send(&sl::ToLauncher::Birth(birth), &fds).expect("sent");
        let worker = greet_worker(&worker_life);
        let mut broker = Chan::from_fd(broker).expect("a socket");
        let first = broker.recv_deadline(LIMIT).expect("a hello");
        assert!(matches!(first.msg, bl::ToBroker::Hello(_)));
        let started = supervisor.recv_deadline(LIMIT).expect("an answer");
        assert!(matches!(&started.msg, sl::ToSupervisor::RoleStarted(started) if started.generation == 1));
        let ready = supervisor.recv_deadline(LIMIT).expect("an answer");
        assert_eq!(ready.msg, sl::ToSupervisor::Ready(hello(1)));
        Self { pid, supervisor, broker, worker, worker_life, next: 1 }
    }

    /// Starts `sh -c SCRIPT`; its number, pid and output.
    pub(crate) fn sh(&mut self, run: RunId, script: &str) -> (CommandId, i32, Output) {
        self.program(run, "/bin/sh", &["sh", "-c", script], "/", false)
            .unwrap_or_else(|failed| panic!("did not start: {failed:?}"))
    }

    /// Starts a program.
    pub(crate) fn program(
        &mut self,
        run: RunId,
        path: &str,
        argv: &[&str],
        cwd: &str,
        background: bool,
    ) -> Result<(CommandId, i32, Output), lw::SpawnFailed> {
        let id = self.next;
        self.next += 1;
        let (stdout, far_stdout) = fd::pipe().expect("a pipe");
        let (stderr, far_stderr) = fd::pipe().expect("a pipe");
        let null = fd::null().expect("the null device");
        let argv: Vec<_> = argv.iter().map(|a| Bytes::new(a.as_bytes()).expect("fits")).collect();
        let env = vec![Bytes::new("PATH=/usr/bin:/bin").expect("fits")];
        let spawn = Spawn {
            id,
            run,
            path: Bytes::new(path.as_bytes()).expect("fits"),
            argv: List::new(argv).expect("fits"),
            env: List::new(env).expect("fits"),
            cwd: Bytes::new(cwd.as_bytes()).expect("fits"),
            background,
        };
        let fds = [null.as_fd(), far_stdout.as_fd(), far_stderr.as_fd()];
        self.worker.send(&lw::ToLauncher::Spawn(spawn), &fds).expect("sent");
        match self.worker.recv_deadline(LIMIT).expect("an answer").msg {
            lw::ToWorker::Started(started) => Ok((id, started.pid, Output { stdout, stderr })),
            lw::ToWorker::SpawnFailed(failed) => Err(failed),
            other => panic!("unexpected {other:?}"),
        }
    }

    /// The end of a command, which must be the next message.
    pub(crate) fn exited(&mut self, id: CommandId) -> Exited {
        match self.worker.recv_deadline(LIMIT).expect("an end").msg {
            lw::ToWorker::Exited(exited) if exited.id == id => exited,
            other => panic!("unexpected {other:?}"),
        }
    }

    /// The receipt of a ladder; ends of commands on the way are dropped.
    pub(crate) fn receipt(&mut self) -> Receipt {
        loop {
            match self.worker.recv_deadline(LIMIT).expect("a receipt").msg {
                lw::ToWorker::Receipt(receipt) => return receipt,
                lw::ToWorker::Exited(_) => {}
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    /// The next message of the launcher to the supervisor.
    pub(crate) fn told(&mut self) -> sl::ToSupervisor {
        self.supervisor.recv_deadline(LIMIT).expect("a message").msg
    }

    /// Gives the launcher a worker again.
    pub(crate) fn restart_worker(&mut self, generation: u32) {
        let (life, far) = socket::pair(socket::Carrier::NATIVE).expect("a pair");
        let start = sl::ToLauncher::StartWorker(sl::Generation { generation });
        self.supervisor.send(&start, &[far.as_fd()]).expect("sent");
        self.worker = greet_worker(&life);
        self.worker_life = life;
    }

    /// Starts the ptyd and plays it.
    pub(crate) fn start_ptyd(&mut self, generation: u32) -> (Chan<lp::ToLauncher, lp::ToPtyd>, OwnedFd) {
        let (life, far) = socket::pair(socket::Carrier::NATIVE).expect("a pair");
        let start = sl::ToLauncher::StartPtyd(sl::Generation { generation });
        self.supervisor.send(&start, &[far.as_fd()]).expect("sent");
        let mut edge = Chan::from_fd(edge_of(&life)).expect("a socket");
        edge.send(&lp::ToLauncher::Hello(hello(generation)), &[]).expect("sent");
        assert!(matches!(edge.recv_deadline(LIMIT).expect("a hello").msg, lp::ToPtyd::Hello(_)));
        (edge, life)
    }

    /// Descriptors the launcher has open.
    pub(crate) fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid)).map_or(0, Iterator::count)
    }

    /// Waits for the launcher's own end.
    pub(crate) fn end(self) -> process::Exit {
        let Self { pid, supervisor, .. } = self;
        drop(supervisor);
        process::reap_pid(pid).expect("ends")
    }
}

/// Takes the launcher edge a fake role hands over.
fn edge_of(life: &OwnedFd) -> OwnedFd {
    let mut buffer = [0; 16];
    let mut received = socket::recv(life, &mut buffer, true).expect("the edge");
    received.fds.pop().expect("one descriptor")
}

fn greet_worker(life: &OwnedFd) -> Worker {
    let mut worker: Worker = Chan::from_fd(edge_of(life)).expect("a socket");
    worker.send(&lw::ToLauncher::Hello(hello(1)), &[]).expect("sent");
    assert!(matches!(worker.recv_deadline(LIMIT).expect("a hello").msg, lw::ToWorker::Hello(_)));
    worker
}

/// Everything until the last writer closes.
pub(crate) fn read_all(fd: OwnedFd) -> String {
    let mut text = String::new();
    std::fs::File::from(fd).read_to_string(&mut text).expect("text");
    text
}

/// One line, without waiting for the end.
pub(crate) fn read_line(fd: &OwnedFd) -> String {
    let mut file = std::fs::File::from(fd.try_clone().expect("a copy"));
    let mut line = Vec::new();
    let mut byte = [0];
    while file.read(&mut byte).expect("a byte") == 1 && byte != *b"\n" {
        line.push(byte[0]);
    }
    String::from_utf8(line).expect("text")
}

/// Whether a pid names a process that has not ended.
pub(crate) fn lives(pid: i32) -> bool {
    shoal_sys::procfs::process(pid).expect("readable").is_some_and(|p| p.state != 'Z')
}

/// Waits until something observable holds; the launcher has no message for it.
#[expect(clippy::disallowed_methods, reason = "a deadline for a test that would hang")]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LIMIT, "never: {what}");
        std::thread::yield_now();
    }
}

/// The edge is closed and gives nothing more.
pub(crate) fn is_closed<Tx: shoal_proto::Message, Rx: shoal_proto::Message>(edge: &mut Chan<Tx, Rx>) -> bool {
    matches!(edge.recv_deadline(LIMIT), Err(ChanError::Closed))
}
