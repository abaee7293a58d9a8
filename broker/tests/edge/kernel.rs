//! A supervisor that plays its part and starts no process: sessions are scripted workers and launchers on threads.

use std::ffi::CString;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use shoal_chan::{Chan, pair};
use shoal_proto::hello::{EDGE_VERSION, ExitStatus, Hello, HostProcess, SessionRole};
use shoal_proto::section::{Approve, AutoApply, Opaque, Section, Sections};
use shoal_proto::supervisor_broker::{
    Adopted, CreateSession, Frozen, Killed, Ping, Processes, RoleExit, RoleUp, Sections as SectionsMessage,
    SessionFailed, SessionUp, Start, ToBroker, ToSupervisor,
};
use shoal_proto::{List, Text, broker_launcher, broker_worker};
use shoal_sys::spawn::{Command, Program};

use crate::client::Client;
use crate::crash::{Crash, Point};
use crate::launcher;
use crate::worker::{self, Memory};

/// What a test tells the fake supervisor.
pub(crate) enum Do {
    /// A worker ended by a signal; a fresh one is started.
    LoseWorker(u64),
    /// A launcher ended by a signal, and with it its session's processes.
    LoseLauncher(u64),
    /// No session can be made any more.
    RefuseSessions,
    /// The session that starts in `/late` is up.
    LetUp,
    /// Ends the broker and starts the next one.
    ReplaceBroker,
    /// Ends everything.
    Stop,
}

/// A broker under test.
pub(crate) struct Kernel {
    dir: tempfile::TempDir,
    tell: Sender<Do>,
    thread: Option<std::thread::JoinHandle<()>>,
    /// Pid of the first broker.
    pub(crate) pid: i32,
    /// Kills brokers.
    pub(crate) crash: Crash,
}

/// A live fake session.
struct Session {
    id: u64,
    order: CreateSession,
    memory: Memory,
}

fn text<const N: usize>(s: &str) -> Text<N> {
    Text::new(s).expect("fits")
}

/// Hello of a fake peer.
pub(crate) fn hello() -> Hello {
    Hello { version: EDGE_VERSION, build: text("test"), generation: 0 }
}

/// A section that allows everything.
pub(crate) fn everything(principal: &str) -> Section {
    let all = || List::new(vec![text("/**")]).expect("fits");
    let names = || List::new(vec![text("*")]).expect("fits");
    Section {
        principal: text(principal),
        fs_read: all(),
        fs_write: all(),
        fs_delete: all(),
        env_read: names(),
        env_write: names(),
        session_write: true,
        journal_read: true,
        time: true,
        opaque: Opaque::Allow,
        auto_apply: AutoApply::InGrant,
        ..Section::default()
    }
}

/// The section of an agent that must ask before anything opaque.
pub(crate) fn asking(principal: &str, approve: Approve) -> Section {
    Section { opaque: Opaque::Ask, approve, journal_read: false, ..everything(principal) }
}

impl Kernel {
    /// A kernel whose local user may do everything and whose `agent:x` must ask.
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// The same with changed limits.
    pub(crate) fn with(quotas: &[(&str, u64)]) -> Self {
        Self::of(&[asking("agent:x", Approve::Human)], quotas)
    }

    /// A kernel with sections of agents beside that of the local user.
    pub(crate) fn of(agents: &[Section], quotas: &[(&str, u64)]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let state = dir.path().join("state");
        std::fs::create_dir(&state).expect("made");
        std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o700)).expect("private");
        let listener = UnixListener::bind(dir.path().join("sock")).expect("bound");
        let uid = shoal_sys::process::uid();
        let mut sections = vec![everything(&format!("uid:{uid}"))];
        sections.extend_from_slice(agents);
        let mut compiled = Sections { sections: List::new(sections).expect("fits"), ..Sections::default() };
        let quotas: Vec<_> = quotas.iter().map(|(name, value)| (text(name), *value)).collect();
        compiled.settings.quotas = List::new(quotas).expect("fits");
        let (tell, told) = channel();
        let crash = Crash::default();
        let supervisor = Supervisor {
            state,
            listener: listener.into(),
            compiled,
            uid,
            sessions: Vec::new(),
            next: 1,
            restarts: 0,
            refuses: false,
            late: None,
            crash: crash.clone(),
        };
        let (started, pid) = channel();
        let thread = std::thread::spawn(move || supervisor.run(&told, &started));
        let pid = pid.recv_timeout(Duration::from_secs(20)).expect("a broker that serves");
        Self { dir, tell, thread: Some(thread), pid, crash }
    }

    /// A connection that has not attached.
    pub(crate) fn connect(&self) -> Client {
        Client::connect(&self.dir.path().join("sock"))
    }

    /// A connection attached to `session` as the human.
    pub(crate) fn attach(&self, session: &str) -> Client {
        let mut client = self.connect();
        client.ok("session.attach", serde_json::json!({"session": session}));
        client
    }

    /// A connection of an agent in its session of this name.
    pub(crate) fn attach_agent(&self, principal: &str, session: &str) -> Client {
        let mut human = self.attach("tokens");
        let token = human.ok("token.create", serde_json::json!({"principal": principal}));
        let mut client = self.connect();
        client.ok("session.attach", serde_json::json!({"session": session, "token": token["token"]}));
        client
    }

    /// Ends the broker by SIGKILL; the next one has taken over once it answers.
    pub(crate) fn replace_broker(&self) {
        let mut witness = self.attach("witness");
        self.tell(Do::ReplaceBroker);
        assert_eq!(witness.frame(), None, "the connection ends with its broker");
    }

    /// The token file.
    pub(crate) fn token_file(&self) -> PathBuf {
        self.dir.path().join("state/tokens.json")
    }

    /// Tells the supervisor something.
    pub(crate) fn tell(&self, what: Do) {
        self.tell.send(what).expect("a supervisor that runs");
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.tell.send(Do::Stop).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

struct Supervisor {
    state: PathBuf,
    listener: OwnedFd,
    compiled: Sections,
    uid: u32,
    sessions: Vec<Session>,
    next: u64,
    restarts: u32,
    refuses: bool,
    late: Option<CreateSession>,
    crash: Crash,
}

type Edge = Chan<ToBroker, ToSupervisor>;

impl Supervisor {
    fn run(mut self, told: &Receiver<Do>, started: &Sender<i32>) {
        let (mut pid, mut edge) = self.start_broker();
        loop {
            match edge.recv_deadline(Duration::from_millis(10)) {
                Ok(received) => {
                    if matches!(received.msg, ToSupervisor::Ready(_)) {
                        started.send(pid).ok();
                    }
                    self.on_message(&mut edge, received.msg);
                }
                Err(shoal_chan::ChanError::TimedOut) => {}
                Err(_) if self.crash.take_news() => {
                    shoal_sys::process::reap_pid(pid).expect("reaped");
                    self.restarts += 1;
                    (pid, edge) = self.start_broker();
                }
                Err(error) => panic!("broker: {error}"),
            }
            match told.try_recv() {
                Ok(Do::Stop) => {
                    drop(edge);
                    shoal_sys::process::kill(pid, 9).ok();
                    shoal_sys::process::reap_pid(pid).ok();
                    return;
                }
                Ok(Do::ReplaceBroker) => {
                    shoal_sys::process::kill(pid, 9).expect("killed");
                    shoal_sys::process::reap_pid(pid).expect("reaped");
                    self.restarts += 1;
                    (pid, edge) = self.start_broker();
                }
                Ok(Do::LoseWorker(id)) => self.lose_worker(&mut edge, id),
                Ok(Do::LoseLauncher(id)) => self.lose_launcher(&mut edge, id),
                Ok(Do::RefuseSessions) => self.refuses = true,
                Ok(Do::LetUp) => {
                    let order = self.late.take().expect("a session that is late");
                    self.make(&mut edge, order);
                }
                Err(_) => {}
            }
        }
    }

    fn start_broker(&mut self) -> (i32, Edge) {
        let (mut mine, theirs) = pair::<ToBroker, ToSupervisor>().expect("a pair");
        let null = shoal_sys::fd::null().expect("null");
        let program = CString::new(env!("CARGO_BIN_EXE_shoal-broker")).expect("a path");
        let err = std::io::stderr();
        let fds: Vec<BorrowedFd<'_>> = vec![null.as_fd(), null.as_fd(), err.as_fd(), theirs.as_fd()];
        let argv = vec![CString::new("shoal-broker").expect("a name")];
        let child = Command::new(Program::Path(program), argv).fds(fds).spawn().expect("started");
        drop(theirs);
        self.crash.watch(child.pid);
        let first = mine.recv_deadline(Duration::from_secs(20)).expect("a hello");
        assert!(matches!(first.msg, ToSupervisor::Hello(_)));
        let dir: OwnedFd = std::fs::File::open(&self.state).expect("opened").into();
        let start = self.start_message();
        mine.send(&ToBroker::Start(start), &[self.listener.as_fd(), dir.as_fd()]).expect("sent");
        let compiled = shoal_sys::memfd::sealed("sections", &self.compiled.encode().expect("encoded")).expect("sealed");
        let sections = SectionsMessage { generation: 1, rejected: text("") };
        mine.send(&ToBroker::Sections(sections), &[compiled.as_fd()]).expect("sent");
        for session in &self.sessions {
            let adopted = Adopted {
                session: session.id,
                owner: session.order.owner.clone(),
                name: session.order.name.clone(),
                generation: 1,
                ptyd: false,
                frozen: session.memory.is_frozen(),
            };
            let [launcher, worker] = Self::ends(&session.memory);
            mine.send(&ToBroker::Adopt(adopted), &[launcher.as_fd(), worker.as_fd()]).ok();
        }
        (child.pid, mine)
    }

    fn start_message(&self) -> Start {
        Start {
            hello: hello(),
            started_ns: 1,
            restarts: self.restarts,
            session: text("default"),
            socket: text("sock"),
            state_dir: text(self.state.to_str().expect("a path")),
            policy: text(""),
            start_dir: text("/"),
            env: List::new(vec![(text("PATH"), text("/bin")), (text("SHOAL_TOKEN"), text("secret"))]).expect("fits"),
            require_token: false,
            uid: self.uid,
            claims: 0b101,
            level: text("L0"),
            isolation: Default::default(),
            adopt: u32::try_from(self.sessions.len()).expect("few"),
        }
    }

    /// Fresh ends of launcher and worker, whose far ends are served by threads.
    fn ends(memory: &Memory) -> [OwnedFd; 2] {
        let (launcher, far) = pair::<broker_launcher::ToLauncher, broker_launcher::ToBroker>().expect("a pair");
        let shared = memory.clone();
        std::thread::spawn(move || launcher::serve(far, &shared));
        let (worker, far) = pair::<broker_worker::ToWorker, broker_worker::ToBroker>().expect("a pair");
        let shared = memory.clone();
        let epoch = memory.renew();
        std::thread::spawn(move || worker::serve(far, &shared, epoch));
        [launcher.as_fd().try_clone_to_owned().expect("a copy"), worker.as_fd().try_clone_to_owned().expect("a copy")]
    }

    fn on_message(&mut self, edge: &mut Edge, message: ToSupervisor) {
        match message {
            ToSupervisor::CreateSession(order) => self.create(edge, order),
            ToSupervisor::KillSession(order) => {
                if let Some(at) = self.sessions.iter().position(|session| session.id == order.session) {
                    self.sessions.swap_remove(at).memory.end();
                }
                let ended = List::new(vec![process(50)]).expect("fits");
                let killed = Killed {
                    order: order.order,
                    session: order.session,
                    ended,
                    survived: List::default(),
                    duration_ms: 1,
                };
                edge.send(&ToBroker::Killed(killed), &[]).expect("sent");
            }
            ToSupervisor::Freeze(order) => {
                self.sessions.iter().filter(|s| s.id == order.session).for_each(|s| s.memory.freeze(true));
                edge.send(&ToBroker::Frozen(Frozen { order: order.order, frozen: true }), &[]).expect("sent");
            }
            ToSupervisor::Thaw(order) => {
                self.sessions.iter().filter(|s| s.id == order.session).for_each(|s| s.memory.freeze(false));
                edge.send(&ToBroker::Frozen(Frozen { order: order.order, frozen: false }), &[]).expect("sent");
            }
            ToSupervisor::ListProcesses(Ping { n }) => {
                let (supervisor, broker) = (process(1), process(2));
                let processes = Processes { order: n, supervisor, broker, sessions: List::default() };
                edge.send(&ToBroker::Processes(processes), &[]).expect("sent");
            }
            ToSupervisor::Hello(_)
            | ToSupervisor::Ready(_)
            | ToSupervisor::NeedPtyd(_)
            | ToSupervisor::Shutdown(_)
            | ToSupervisor::Pong(_)
            | ToSupervisor::Reload(_)
            | ToSupervisor::Drained(_) => {}
        }
    }

    fn create(&mut self, edge: &mut Edge, order: CreateSession) {
        let is_missing = order.cwd.as_str() == "/missing";
        if is_missing || self.refuses {
            let (step, remedy) = (text("enter the directory"), text(""));
            let failed = SessionFailed { order: order.order, step, errno: 2, remedy, no_such_dir: is_missing };
            edge.send(&ToBroker::SessionFailed(failed), &[]).expect("sent");
            return;
        }
        self.crash.pass(Point::SessionAsked);
        match order.cwd.as_str() {
            "/late" => self.late = Some(order),
            _ => self.make(edge, order),
        }
    }

    fn make(&mut self, edge: &mut Edge, order: CreateSession) {
        let id = self.next;
        self.next += 1;
        let memory = Memory::new(order.cwd.as_str(), self.crash.clone());
        let [launcher, worker] = Self::ends(&memory);
        let up = SessionUp { order: order.order, session: id, generation: 0, launcher: -1 };
        self.sessions.push(Session { id, order, memory });
        // A broker that was killed is told by the adoption of its successor.
        edge.send(&ToBroker::SessionUp(up), &[launcher.as_fd(), worker.as_fd()]).ok();
    }

    fn lose_launcher(&mut self, edge: &mut Edge, id: u64) {
        let at = self.sessions.iter().position(|session| session.id == id).expect("a session");
        self.sessions.swap_remove(at).memory.end();
        let (role, status) = (SessionRole::Launcher, ExitStatus { code: None, signal: Some(9) });
        let exit = RoleExit { session: id, role, status, restart_in_ms: None, fault: Text::default() };
        edge.send(&ToBroker::RoleExit(exit), &[]).expect("sent");
    }

    fn lose_worker(&mut self, edge: &mut Edge, id: u64) {
        let session = self.sessions.iter_mut().find(|session| session.id == id).expect("a session");
        session.memory.end();
        session.memory = Memory::new("/", self.crash.clone());
        let status = ExitStatus { code: None, signal: Some(11) };
        let exit =
            RoleExit { session: id, role: SessionRole::Worker, status, restart_in_ms: Some(0), fault: Text::default() };
        edge.send(&ToBroker::RoleExit(exit), &[]).expect("sent");
        let [_, worker] = Self::ends(&session.memory);
        let up = RoleUp { session: id, role: SessionRole::Worker, generation: 1 };
        edge.send(&ToBroker::RoleUp(up), &[worker.as_fd()]).expect("sent");
    }
}

fn process(pid: i32) -> HostProcess {
    HostProcess { pid, ppid: 1, comm: text("fake"), rss: 1 }
}
