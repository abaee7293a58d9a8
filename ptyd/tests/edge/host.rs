//! A terminal host under test and the peers that the test plays.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use shoal_chan::Chan;
use shoal_proto::broker_launcher::{PtyExited, PtyId};
use shoal_proto::broker_ptyd::{Expect, Input, PtyCall, Read, Resize, Screen, Send, ToBroker, ToPtyd, Wait};
use shoal_proto::hello::{BUILD, EDGE_VERSION, ExitStatus, Hello};
use shoal_proto::supervisor_launcher::Generation;
use shoal_proto::{Bytes, List, Text, launcher_ptyd as lp};
use shoal_sys::spawn::{Command, Program};
use shoal_sys::{fd, process, pty, socket};

/// Far beyond anything a healthy terminal host needs; only a hang meets it.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// A Python program that prints rows and columns now and whenever it is told that they changed.
pub(crate) const SIZE_TELLER: &str = "
import os, signal
def tell(*_):
    size = os.get_terminal_size()
    os.write(1, b'%d %d\\n' % (size.lines, size.columns))
signal.signal(signal.SIGWINCH, tell)
tell()
while True: signal.pause()
";

type BrokerEnd = Chan<ToPtyd, ToBroker>;

/// A terminal host and both edges.
pub(crate) struct Host {
    pub(crate) pid: i32,
    pub(crate) launcher: Chan<lp::ToPtyd, lp::ToLauncher>,
    pub(crate) broker: BrokerEnd,
    next: u64,
    /// Events that came while an answer was awaited.
    pub(crate) events: Vec<ToBroker>,
}

/// A program on a terminal; the launcher's copy of the leader.
pub(crate) struct Hosted {
    pub(crate) pid: i32,
    pub(crate) leader: OwnedFd,
}

fn hello(generation: u32) -> Hello {
    Hello { version: EDGE_VERSION, build: Text::cut(BUILD), generation }
}

/// Starts the executable on both edges.
fn start_process() -> (i32, OwnedFd, OwnedFd) {
    let image = fd::open_program(Path::new(env!("CARGO_BIN_EXE_shoal-ptyd"))).expect("built");
    let null = fd::null().expect("the null device");
    let (launcher, far_launcher) = socket::pair(socket::Carrier::NATIVE).expect("a pair");
    let (broker, far_broker) = socket::pair(socket::Carrier::NATIVE).expect("a pair");
    let stderr = std::io::stderr();
    let fds = vec![null.as_fd(), null.as_fd(), stderr.as_fd(), far_launcher.as_fd(), far_broker.as_fd()];
    let command = Command::new(Program::Fd(image.as_fd()), vec![c"shoal-ptyd".to_owned()]).fds(fds);
    (command.spawn().expect("started").pid, launcher, broker)
}

impl Host {
    /// A terminal host that has greeted both peers.
    pub(crate) fn start() -> Self {
        let (pid, launcher, broker) = start_process();
        let mut host = Self {
            pid,
            launcher: Chan::from_fd(launcher).expect("a socket"),
            broker: Chan::from_fd(broker).expect("a socket"),
            next: 1,
            events: Vec::new(),
        };
        let first = host.launcher.recv_deadline(LIMIT).expect("a hello").msg;
        assert!(matches!(first, lp::ToLauncher::Hello(hello) if hello.version == EDGE_VERSION));
        host.launcher.send(&lp::ToPtyd::Hello(hello(3)), &[]).expect("sent");
        host.greet(3);
        host
    }

    fn greet(&mut self, generation: u32) {
        self.broker.send(&ToPtyd::Hello(hello(generation)), &[]).expect("sent");
        let first = self.broker.recv_deadline(LIMIT).expect("a hello").msg;
        assert_eq!(first, ToBroker::Hello(hello(generation)));
    }

    /// Gives the host a new broker end.
    pub(crate) fn adopt(&mut self, generation: u32) {
        let (ours, theirs) = socket::pair(socket::Carrier::NATIVE).expect("a pair");
        self.launcher.send(&lp::ToPtyd::Adopt(Generation { generation }), &[theirs.as_fd()]).expect("sent");
        self.broker = Chan::from_fd(ours).expect("a socket");
        self.greet(generation);
    }

    /// A host that takes over the terminals of one that died.
    pub(crate) fn replace(&mut self, programs: &[(PtyId, &Hosted)]) {
        process::kill(self.pid, 9).expect("killed");
        process::reap_pid(self.pid).expect("reaped");
        let calls = self.next;
        *self = Self::start();
        self.next = calls;
        for (id, program) in programs {
            self.give(*id, program, true);
        }
    }

    /// Starts a program on a new terminal and gives the leader to the host.
    pub(crate) fn open(&mut self, id: PtyId, cols: u16, rows: u16, argv: &[&str]) -> Hosted {
        self.broker.send(&ToPtyd::Expect(Expect { id, cols, rows }), &[]).expect("sent");
        let program = on_terminal(cols, rows, argv);
        self.give(id, &program, false);
        program
    }

    pub(crate) fn sh(&mut self, id: PtyId, script: &str) -> Hosted {
        self.open(id, 80, 24, &["sh", "-c", script])
    }

    pub(crate) fn give(&mut self, id: PtyId, program: &Hosted, again: bool) {
        let (cols, rows) = pty::size(&program.leader).expect("a size");
        let leader = lp::Leader { id, pid: program.pid, cols, rows, again };
        self.launcher.send(&lp::ToPtyd::Leader(leader), &[program.leader.as_fd()]).expect("sent");
    }

    /// Reaps the program and tells the host, as the launcher does.
    pub(crate) fn reap(&mut self, id: PtyId, program: &Hosted) -> ExitStatus {
        let status = match process::reap_pid(program.pid).expect("ends") {
            process::Exit::Code(code) => ExitStatus { code: Some(code), signal: None },
            process::Exit::Signal(signal) => ExitStatus { code: None, signal: Some(signal) },
        };
        self.launcher.send(&lp::ToPtyd::Exited(PtyExited { id, status }), &[]).expect("sent");
        status
    }

    fn call(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// The answer to a call; events on the way are kept.
    pub(crate) fn answer(&mut self, call: u64) -> ToBroker {
        loop {
            let message = self.broker.recv_deadline(LIMIT).expect("an answer").msg;
            match call_of(&message) {
                Some(of) if of == call => return message,
                Some(of) => panic!("answer to {of} while {call} was awaited: {message:?}"),
                None => self.events.push(message),
            }
        }
    }

    /// The next event of a kind.
    pub(crate) fn event(&mut self, wanted: impl Fn(&ToBroker) -> bool) -> ToBroker {
        if let Some(at) = self.events.iter().position(&wanted) {
            return self.events.remove(at);
        }
        loop {
            let message = self.broker.recv_deadline(LIMIT).expect("an event").msg;
            if wanted(&message) {
                return message;
            }
            self.events.push(message);
        }
    }

    pub(crate) fn begin_send(&mut self, id: PtyId, input: Vec<Input>, paste: bool) -> u64 {
        let call = self.call();
        let input = List::new(input).expect("fits");
        self.broker.send(&ToPtyd::Send(Send { call, id, input, paste }), &[]).expect("sent");
        call
    }

    pub(crate) fn send(&mut self, id: PtyId, input: Vec<Input>) -> ToBroker {
        let call = self.begin_send(id, input, false);
        self.answer(call)
    }

    /// Types text that has to be written whole.
    pub(crate) fn type_text(&mut self, id: PtyId, typed: &str) {
        let ToBroker::Sent(sent) = self.send(id, vec![text(typed)]) else { panic!("not sent") };
        assert!(sent.complete && sent.sent == typed.len() as u64, "{sent:?}");
    }

    pub(crate) fn begin_read(&mut self, id: PtyId, wait: Option<Wait>) -> u64 {
        let call = self.call();
        let read = Read { call, id, wait, scrollback: None, formatted: false };
        self.broker.send(&ToPtyd::Read(read), &[]).expect("sent");
        call
    }

    pub(crate) fn read_with(&mut self, read: Read) -> Screen {
        let call = self.call();
        self.broker.send(&ToPtyd::Read(Read { call, ..read }), &[]).expect("sent");
        self.screen(call)
    }

    pub(crate) fn screen(&mut self, call: u64) -> Screen {
        match self.answer(call) {
            ToBroker::Screen(screen) => screen,
            other => panic!("no screen: {other:?}"),
        }
    }

    pub(crate) fn read(&mut self, id: PtyId, wait: Option<Wait>) -> Screen {
        let call = self.begin_read(id, wait);
        self.screen(call)
    }

    /// Waits until a text is on the screen.
    pub(crate) fn until(&mut self, id: PtyId, mark: &str) -> Screen {
        let wait = Wait { text: Some(Text::new(mark).expect("fits")), ..patient() };
        let screen = self.read(id, Some(wait));
        assert!(!screen.timed_out && screen.matched.is_some(), "{mark:?} never came: {:#?}", lines(&screen));
        screen
    }

    pub(crate) fn resize(&mut self, id: PtyId, cols: u16, rows: u16) -> ToBroker {
        let call = self.call();
        self.broker.send(&ToPtyd::Resize(Resize { call, id, cols, rows }), &[]).expect("sent");
        self.answer(call)
    }

    pub(crate) fn close(&mut self, id: PtyId) {
        let call = self.call();
        self.broker.send(&ToPtyd::Close(PtyCall { call, id }), &[]).expect("sent");
        assert_eq!(self.answer(call), ToBroker::Done(PtyCall { call, id }));
    }

    /// Descriptors the host has open.
    pub(crate) fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid)).map_or(0, Iterator::count)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Whatever the test saw, the process must not outlive it; one that is gone already is what is wanted.
        let gone = !process::kill(self.pid, 9).is_ok_and(|sent| sent);
        assert!(gone || process::reap_pid(self.pid).is_ok());
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        // The session of the program; most tests have ended it themselves.
        if process::kill_group(self.pid, 9).is_ok_and(|sent| sent) {
            process::reap_pid(self.pid).ok();
        }
    }
}

/// Starts a program as the leader of a session on a new terminal.
pub(crate) fn on_terminal(cols: u16, rows: u16, argv: &[&str]) -> Hosted {
    let pty = pty::open(cols, rows).expect("a terminal");
    let arguments: Vec<CString> = argv.iter().map(|a| CString::new(*a).expect("no NUL")).collect();
    let path = program_path(argv.first().expect("a program"));
    let env = ["PATH=/usr/bin:/bin", "TERM=xterm-256color", "LC_ALL=C.UTF-8", "HOME=/nonexistent"];
    let env: Vec<CString> = env.iter().map(|pair| CString::new(*pair).expect("no NUL")).collect();
    let fds = vec![pty.follower.as_fd(), pty.follower.as_fd(), pty.follower.as_fd()];
    let command = Command::new(Program::Path(path), arguments).env(env).fds(fds).setsid().controlling_tty();
    let pid = command.spawn().expect("started").pid;
    Hosted { pid, leader: pty.leader }
}

fn program_path(name: &str) -> CString {
    let found = ["/usr/bin", "/bin"].iter().map(|dir| Path::new(dir).join(name)).find(|path| path.exists());
    CString::new(found.unwrap_or_else(|| panic!("{name} is needed")).to_str().expect("text")).expect("no NUL")
}

fn call_of(message: &ToBroker) -> Option<u64> {
    match message {
        ToBroker::Sent(sent) => Some(sent.call),
        ToBroker::Screen(screen) => Some(screen.call),
        ToBroker::Done(done) => Some(done.call),
        ToBroker::Refused(refused) => Some(refused.call),
        ToBroker::Hello(_) | ToBroker::Tick(_) | ToBroker::Exited(_) | ToBroker::Hosted(_) => None,
    }
}

pub(crate) fn text(text: &str) -> Input {
    Input::Text(Text::new(text).expect("fits"))
}

pub(crate) fn key(name: &str) -> Input {
    Input::Key(Text::new(name).expect("fits"))
}

pub(crate) fn raw(bytes: &[u8]) -> Input {
    Input::Raw(Bytes::new(bytes).expect("fits"))
}

/// A wait without a condition and with much time.
pub(crate) fn patient() -> Wait {
    Wait { text: None, regex: None, quiet_ms: None, exit: false, timeout_ms: 25_000 }
}

/// The rows that show something.
pub(crate) fn lines(screen: &Screen) -> Vec<&str> {
    screen.rows.as_slice().iter().map(|row| row.as_str()).filter(|row| !row.is_empty()).collect()
}
