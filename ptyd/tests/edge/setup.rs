//! A ptyd under test, the peers that the test plays, and programs on its terminals.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use shoal_chan::Chan;
use shoal_proto::broker_launcher::{PtyExited, PtyId};
use shoal_proto::broker_ptyd::{Input, Matched, Read, Screen, Send, ToBroker, ToPtyd, Wait};
use shoal_proto::hello::{BUILD, EDGE_VERSION, ExitStatus, Hello};
use shoal_proto::{List, Text, launcher_ptyd};
use shoal_sys::process::{self, Exit};
use shoal_sys::spawn::{Command, Program};
use shoal_sys::{fd, pty, socket};

/// Far beyond anything a healthy ptyd needs; only a hang meets it.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);
pub(crate) const LIMIT_MS: u32 = 20_000;

pub(crate) struct Ptyd {
    pub(crate) launcher: Chan<launcher_ptyd::ToPtyd, launcher_ptyd::ToLauncher>,
    pub(crate) broker: Chan<ToPtyd, ToBroker>,
    pub(crate) pid: i32,
    calls: u64,
}

pub(crate) fn hello(generation: u32) -> Hello {
    Hello { version: EDGE_VERSION, build: Text::cut(BUILD), generation }
}

/// A program on a terminal, and the launcher's copy of the leader.
pub(crate) struct Running {
    pub(crate) id: PtyId,
    pub(crate) pid: i32,
    pub(crate) leader: OwnedFd,
}

impl Ptyd {
    pub(crate) fn start() -> Self {
        let image = fd::open_program(Path::new(env!("CARGO_BIN_EXE_shoal-ptyd"))).expect("the ptyd is built");
        let null = fd::null().expect("the null device");
        let (launcher, far_launcher) = socket::pair(socket::Carrier::NATIVE).expect("a pair");
        let (broker, far_broker) = socket::pair(socket::Carrier::NATIVE).expect("a pair");
        let stderr = std::io::stderr();
        let fds = vec![null.as_fd(), null.as_fd(), stderr.as_fd(), far_launcher.as_fd(), far_broker.as_fd()];
        let command = Command::new(Program::Fd(image.as_fd()), vec![c"shoal-ptyd".to_owned()]).fds(fds);
        let pid = command.spawn().expect("started").pid;
        let mut launcher: Chan<launcher_ptyd::ToPtyd, launcher_ptyd::ToLauncher> =
            Chan::from_fd(launcher).expect("a socket");
        let first = launcher.recv_deadline(LIMIT).expect("a hello").msg;
        assert!(matches!(first, launcher_ptyd::ToLauncher::Hello(_)));
        launcher.send(&launcher_ptyd::ToPtyd::Hello(hello(1)), &[]).expect("sent");
        let mut broker: Chan<ToPtyd, ToBroker> = Chan::from_fd(broker).expect("a socket");
        broker.send(&ToPtyd::Hello(hello(1)), &[]).expect("sent");
        assert_eq!(broker.recv_deadline(LIMIT).expect("a hello").msg, ToBroker::Hello(hello(1)));
        Self { launcher, broker, pid, calls: 0 }
    }

    /// Starts `sh -c SCRIPT` on a terminal of 40 columns and 6 rows.
    pub(crate) fn sh(&mut self, id: PtyId, script: &str) -> Running {
        let running = start_on_terminal(id, script);
        self.give(&running, false);
        running
    }

    pub(crate) fn give(&mut self, running: &Running, again: bool) {
        let leader = launcher_ptyd::Leader { id: running.id, pid: running.pid, cols: 40, rows: 6, again };
        self.launcher.send(&launcher_ptyd::ToPtyd::Leader(leader), &[running.leader.as_fd()]).expect("sent");
    }

    /// Waits for the program's end and tells it, as the launcher does.
    pub(crate) fn reap(&mut self, running: &Running) -> ExitStatus {
        let status = match process::reap_pid(running.pid).expect("ends") {
            Exit::Code(code) => ExitStatus { code: Some(code), signal: None },
            Exit::Signal(signal) => ExitStatus { code: None, signal: Some(signal) },
        };
        let exited = PtyExited { id: running.id, status };
        self.launcher.send(&launcher_ptyd::ToPtyd::Exited(exited), &[]).expect("sent");
        status
    }

    pub(crate) fn call(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    /// The next message that is no event.
    pub(crate) fn answer(&mut self) -> ToBroker {
        loop {
            match self.broker.recv_deadline(LIMIT).expect("an answer").msg {
                ToBroker::Tick(_) | ToBroker::Exited(_) => {}
                other => return other,
            }
        }
    }

    pub(crate) fn ask(&mut self, message: &ToPtyd) -> ToBroker {
        self.broker.send(message, &[]).expect("sent");
        self.answer()
    }

    pub(crate) fn read(&mut self, id: PtyId, wait: Option<Wait>) -> Screen {
        let read = Read { call: self.call(), id, wait, scrollback: None, formatted: false };
        match self.ask(&ToPtyd::Read(read)) {
            ToBroker::Screen(screen) => screen,
            other => panic!("unexpected {other:?}"),
        }
    }

    pub(crate) fn read_text(&mut self, id: PtyId, text: &str) -> Screen {
        let screen = self.read(id, Some(Wait { text: Some(Text::cut(text)), ..wait() }));
        assert_eq!(screen.matched, Some(Matched::Text), "{:?}", rows(&screen));
        screen
    }

    pub(crate) fn send(&mut self, id: PtyId, input: Vec<Input>) -> ToBroker {
        let send = Send { call: self.call(), id, input: List::new(input).expect("fits"), paste: false };
        self.ask(&ToPtyd::Send(send))
    }
}

impl Drop for Ptyd {
    fn drop(&mut self) {
        // The end of the launcher is its end; a test that failed before leaves the reaping to the system.
        let _ended: std::io::Result<bool> = process::kill(self.pid, 9);
    }
}

pub(crate) fn start_on_terminal(id: PtyId, script: &str) -> Running {
    let pty = pty::open(40, 6).expect("a terminal");
    let argv = ["sh", "-c", script].map(|a| CString::new(a).expect("no NUL")).to_vec();
    let env = ["PATH=/usr/bin:/bin", "TERM=xterm-256color", "LC_ALL=C.UTF-8"].map(|v| CString::new(v).expect("no NUL"));
    let command = Command::new(Program::Path(c"/bin/sh".to_owned()), argv).env(env.to_vec()).setsid().controlling_tty();
    let fds = vec![pty.follower.as_fd(), pty.follower.as_fd(), pty.follower.as_fd()];
    let pid = command.fds(fds).spawn().expect("started").pid;
    Running { id, pid, leader: pty.leader }
}

pub(crate) fn wait() -> Wait {
    Wait { text: None, regex: None, quiet_ms: None, exit: false, timeout_ms: LIMIT_MS }
}

pub(crate) fn text(text: &str) -> Input {
    Input::Text(Text::new(text).expect("fits"))
}

pub(crate) fn key(name: &str) -> Input {
    Input::Key(Text::new(name).expect("fits"))
}

pub(crate) fn rows(screen: &Screen) -> Vec<&str> {
    screen.rows.as_slice().iter().map(Text::as_str).collect()
}
