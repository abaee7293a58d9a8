//! A kernel in a directory of its own, and the test's side of its roles.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use shoal_chan::{Chan, Received};
use shoal_proto::hello::BUILD;
use shoal_proto::supervisor_broker::{self as broker, CreateSession, Limits, Ping};
use shoal_proto::supervisor_launcher as launcher;
use shoal_proto::{EDGE_VERSION, Hello, Message, Text};

/// Nothing here takes this long; it is a hang.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// One scripted role that the kernel started.
pub(crate) struct Role<Tx, Rx> {
    pub(crate) edge: Chan<Tx, Rx>,
    /// What it said of itself.
    pub(crate) report: String,
    script: UnixStream,
}

impl<Tx: Message, Rx: Message + std::fmt::Debug> Role<Tx, Rx> {
    /// Gives an order and waits until it is done.
    pub(crate) fn order(&mut self, order: u8) {
        self.script.write_all(&[order]).unwrap();
        // An exit is answered by the end.
        let _end = self.script.read(&mut [0]);
    }

    /// Its host pid, whatever it believes to be.
    pub(crate) fn pid(&self) -> i32 {
        shoal_sys::peer::credentials(&self.script).unwrap().pid
    }

    /// The next message that `want` takes; others are skipped, the end is a failure.
    pub(crate) fn expect<T>(&mut self, want: impl Fn(&Rx) -> Option<T>) -> (T, Vec<OwnedFd>) {
        loop {
            let Received { msg, fds } = self.edge.recv_deadline(LONG).unwrap();
            if let Some(got) = want(&msg) {
                return (got, fds);
            }
        }
    }

    /// Waits until the role's process has ended.
    pub(crate) fn wait_end(&mut self) {
        self.script.set_read_timeout(Some(LONG)).unwrap();
        assert!(matches!(self.script.read(&mut [0]), Ok(0)) || !crate::rig::exists(self.pid()));
    }
}

/// Matches one variant and gives its payload.
macro_rules! variant {
    ($path:path) => {
        |message| if let $path(payload) = message { Some(payload.clone()) } else { None }
    };
}
pub(crate) use variant;

pub(crate) fn exists(pid: i32) -> bool {
    matches!(shoal_sys::procfs::process(pid), Ok(Some(process)) if process.state != 'Z')
}

/// Polls something there is no event for.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::yield_now();
    }
}

pub(crate) fn hello() -> Hello {
    Hello { version: EDGE_VERSION, build: Text::cut(BUILD), generation: 1 }
}

pub(crate) struct Rig {
    pub(crate) dir: PathBuf,
    pub(crate) kernel: Option<Child>,
    scripts: UnixListener,
    /// Roles that came while another was waited for.
    early: RefCell<Vec<Arrived>>,
}

/// A role that reported itself.
struct Arrived {
    report: String,
    edge: OwnedFd,
    script: UnixStream,
}

impl Rig {
    /// A directory with the kernel and all roles in it.
    pub(crate) fn new() -> Self {
        let name = format!("edge-{}-{}", std::process::id(), std::thread::current().name().unwrap_or("main"));
        // Not below /tmp, which is private inside a jail; the path is short enough for sockets.
        let dir = shoal_harness::place::outside_tmp(env!("CARGO_TARGET_TMPDIR")).join(name);
        let bin = dir.join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::copy(env!("CARGO_BIN_EXE_shoal-kernel"), bin.join("shoal-kernel")).unwrap();
        let fake = bin.join("shoal-broker");
        std::fs::copy(std::env::current_exe().unwrap(), &fake).unwrap();
        for role in ["policy", "launcher", "worker", "ptyd"] {
            std::fs::hard_link(&fake, bin.join(format!("shoal-{role}"))).unwrap();
        }
        let scripts = UnixListener::bind(bin.join("script.sock")).unwrap();
        Self { dir, kernel: None, scripts, early: RefCell::default() }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.join("run/k.sock")
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(self.dir.join("bin/shoal-kernel"));
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", &self.dir).env("SSH_AGENT_PID", "1");
        command.arg("--socket").arg(self.socket()).arg("--state-dir").arg(self.dir.join("state"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts the kernel; its broker is there, and nothing was said yet.
    pub(crate) fn start(&mut self) -> Role<broker::ToSupervisor, broker::ToBroker> {
        self.kernel = Some(self.command().spawn().unwrap());
        self.broker()
    }

    /// Starts the kernel and brings it to readiness.
    pub(crate) fn ready(&mut self) -> Role<broker::ToSupervisor, broker::ToBroker> {
        let mut broker = self.start();
        self.serve(&mut broker);
        let mut trial = self.launcher();
        trial.expect(variant!(launcher::ToLauncher::Birth));
        trial.edge.send(&launcher::ToSupervisor::Ready(hello()), &[]).unwrap();
        trial.expect(variant!(launcher::ToLauncher::Kill));
        trial.order(crate::fake::EXIT);
        assert_eq!(self.stdout_line(), format!("ready {}\n", self.socket().display()));
        broker
    }

    pub(crate) fn serve(&self, broker: &mut Role<broker::ToSupervisor, broker::ToBroker>) {
        broker.expect(variant!(broker::ToBroker::Start));
        broker.expect(variant!(broker::ToBroker::Sections));
        broker.edge.send(&broker::ToSupervisor::Hello(hello()), &[]).unwrap();
        broker.edge.send(&broker::ToSupervisor::Ready(hello()), &[]).unwrap();
    }

    pub(crate) fn broker(&self) -> Role<broker::ToSupervisor, broker::ToBroker> {
        self.role("shoal-broker")
    }

    pub(crate) fn launcher(&self) -> Role<launcher::ToSupervisor, launcher::ToLauncher> {
        self.role("shoal-launcher")
    }

    /// The next role of a name, in whatever order others come.
    fn role<Tx: Message, Rx: Message>(&self, name: &str) -> Role<Tx, Rx> {
        let is_it = |role: &Arrived| role.report.starts_with(name);
        let mut early = self.early.borrow_mut();
        let found = early.iter().position(is_it).map(|at| early.remove(at));
        let Arrived { report, edge, script } = found.unwrap_or_else(|| {
            loop {
                let role = self.arrival(name);
                if is_it(&role) {
                    return role;
                }
                early.push(role);
            }
        });
        Role { edge: Chan::from_fd(edge).unwrap(), report, script }
    }

    fn arrival(&self, name: &str) -> Arrived {
        use std::os::fd::AsFd;
        let want = shoal_sys::poll::Ready::READ;
        assert!(shoal_sys::poll::wait(self.scripts.as_fd(), want, Some(LONG)).unwrap(), "no {name} came");
        let (script, _) = self.scripts.accept().unwrap();
        let mut buffer = [0; 512];
        let mut got = shoal_sys::socket::recv(&script, &mut buffer, true).unwrap();
        let report = String::from_utf8_lossy(&buffer[..got.len]).into_owned();
        Arrived { report, edge: got.fds.pop().unwrap(), script }
    }

    /// Orders a session and brings it up; its id, the broker's ends and its launcher.
    pub(crate) fn session(
        &self,
        broker: &mut Role<broker::ToSupervisor, broker::ToBroker>,
    ) -> (broker::SessionUp, Vec<OwnedFd>, Role<launcher::ToSupervisor, launcher::ToLauncher>, Vec<OwnedFd>) {
        broker.edge.send(&broker::ToSupervisor::CreateSession(order(1)), &[]).unwrap();
        let mut launcher = self.launcher();
        let (_birth, theirs) = launcher.expect(variant!(launcher::ToLauncher::Birth));
        let started = launcher::RoleStarted { role: shoal_proto::hello::SessionRole::Worker, pid: 2, generation: 1 };
        launcher.edge.send(&launcher::ToSupervisor::RoleStarted(started), &[]).unwrap();
        launcher.edge.send(&launcher::ToSupervisor::Ready(hello()), &[]).unwrap();
        let (up, ends) = broker.expect(variant!(broker::ToBroker::SessionUp));
        assert_eq!(up.order, 1);
        (up, ends, launcher, theirs)
    }

    pub(crate) fn stdout_line(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.kernel.as_mut().unwrap().stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        line
    }

    /// Waits for the kernel's end: exit code, standard output and standard error.
    pub(crate) fn wait(&mut self) -> (Option<i32>, String, String) {
        let output = self.kernel.take().unwrap().wait_with_output().unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    pub(crate) fn signal(&self, signal: i32) {
        let pid = i32::try_from(self.kernel.as_ref().unwrap().id()).unwrap();
        assert!(shoal_sys::process::kill(pid, signal).unwrap());
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some(mut kernel) = self.kernel.take() {
            let _gone = kernel.kill();
            let _reaped = kernel.wait();
        }
        let _removed = std::fs::remove_dir_all(&self.dir);
    }
}

pub(crate) fn order(number: u64) -> CreateSession {
    CreateSession {
        order: number,
        owner: Text::cut(&format!("uid:{}", shoal_sys::process::uid())),
        name: Text::cut("default"),
        cwd: Text::cut("/"),
        limits: Limits::default(),
        lane: None,
    }
}

pub(crate) fn ping(n: u64) -> Ping {
    Ping { n }
}
