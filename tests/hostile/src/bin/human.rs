//! A program of the user's, outside every session: what an attacker goes for besides the kernel.
//!
//! Arguments: home, runtime directory. It prints one line of JSON with what an attacker may know of it, answers every
//! line of its input with what happened to it, and takes everything away at the end of its input.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a program of the tests")]

use std::ffi::CString;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};

use shoal_hostile::Targets;
use shoal_sys::attack as sys;
use shoal_sys::poll::{Ready, poll};
use shoal_sys::signal::SignalFd;

/// Numbers of terminals that a session's own are below.
const TERMINALS: usize = 12;

/// Read out of its memory by those who can.
static SECRET: &[u8] = b"correct horse battery staple";

/// What it made and takes away again.
#[derive(Default)]
struct Made {
    files: Vec<PathBuf>,
    segment: i32,
    queue: CString,
}

impl Drop for Made {
    fn drop(&mut self) {
        for path in self.files.iter().rev() {
            let removed = if path.is_dir() { std::fs::remove_dir(path) } else { std::fs::remove_file(path) };
            if let Err(error) = removed {
                println!("{}: {error}", path.display());
            }
        }
        for (what, removed) in
            [("segment", sys::remove_segment(self.segment)), ("queue", sys::remove_queue(&self.queue))]
        {
            if let Err(error) = removed {
                println!("{what}: {error}");
            }
        }
    }
}

impl Made {
    fn dir(&mut self, path: PathBuf) -> io::Result<PathBuf> {
        if !path.exists() {
            std::fs::create_dir_all(&path)?;
            self.files.push(path.clone());
        }
        Ok(path)
    }

    /// The multiplexer's own directory. Tests of one user run at once, and that user may have a multiplexer of their own: whoever
    /// comes second has a directory beside it.
    fn multiplexer(&mut self, uid: u32, pid: i32) -> io::Result<PathBuf> {
        let path = PathBuf::from(format!("/tmp/tmux-{uid}"));
        match std::fs::create_dir(&path) {
            Ok(()) => {
                self.files.push(path.clone());
                Ok(path)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.dir(PathBuf::from(format!("/tmp/tmux-{uid}-{pid}")))
            }
            Err(error) => Err(error),
        }
    }

    fn listen(&mut self, path: PathBuf) -> io::Result<UnixListener> {
        let listener = UnixListener::bind(&path)?;
        self.files.push(path);
        Ok(listener)
    }
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(home), Some(run)) = (arguments.next(), arguments.next()) else {
        return Err(io::Error::other("usage: human HOME RUN"));
    };
    let pid = shoal_sys::process::pid();
    let mark = format!("shoal-human-{pid}");
    // Nicer than others, who are told apart by it.
    let nice = rustix::process::getpriority_process(None)?;
    rustix::process::setpriority_process(None, nice + 1)?;
    let signals = SignalFd::new(&[libc::SIGIO, libc::SIGWINCH])?;
    let mut made = Made::default();
    made.queue = CString::new(mark.as_str())?;

    let terminals: Vec<_> = (0..TERMINALS).map(|_| shoal_sys::pty::open(80, 24)).collect::<io::Result<_>>()?;
    let follower = terminals.last().map(|pty| pty.follower.as_raw_fd()).unwrap_or_default();
    let terminal = std::fs::read_link(format!("/proc/self/fd/{follower}"))?;

    for dir in ["/tmp", "/dev/shm"] {
        let path = Path::new(dir).join(&mark);
        std::fs::write(&path, SECRET)?;
        made.files.push(path);
    }
    let key = 0x5348_0000 | (pid & 0xFFFF);
    made.segment = sys::segment(key, true)?;
    sys::queue(&made.queue, true)?;

    let uid = shoal_sys::process::uid();
    let places = [
        ("bus", run.clone(), "bus"),
        ("manager", run.join("systemd"), "private"),
        ("containers", run.clone(), "docker.sock"),
        ("gpg-agent", run.join("gnupg"), "S.gpg-agent"),
        ("gpg-agent-in-home", home.join(".gnupg"), "S.gpg-agent"),
        ("ssh-agent", PathBuf::from(format!("/tmp/ssh-{pid}")), "agent.1"),
        ("ssh-agent-in-home", home.join(".ssh/agent"), "s.1"),
        ("tmux", made.multiplexer(uid, pid)?, "default"),
        ("emacs", home.join(".emacs.d/server"), "server"),
    ];
    let mut services = std::collections::BTreeMap::new();
    let mut listeners = Vec::new();
    for (service, dir, name) in places {
        let path = made.dir(dir)?.join(name);
        listeners.push(made.listen(path.clone())?);
        services.insert(service.to_owned(), path);
    }
    let notify = run.join("notify");
    let _datagrams = UnixDatagram::bind(&notify)?;
    made.files.push(notify.clone());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&mark)?)?;
    let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let tcp6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0))?;
    let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;

    let targets = Targets {
        human: pid,
        address: SECRET.as_ptr().addr(),
        terminal,
        abstract_name: mark.clone(),
        mark,
        key,
        tcp: tcp.local_addr()?.port(),
        tcp6: tcp6.local_addr()?.port(),
        udp: udp.local_addr()?.port(),
        services,
        notify,
        ..Targets::default()
    };
    say(&targets.to_text())?;
    attend(&signals)
}

/// Answers until the end of input.
fn attend(signals: &SignalFd) -> io::Result<()> {
    let stdin = io::stdin();
    let (mut sigio, mut sigwinch) = (0, 0);
    loop {
        let ready = poll(&[(stdin.as_fd(), Ready::READ), (signals.as_fd(), Ready::READ)], None)?;
        while let Some(signal) = signals.read()? {
            match signal {
                libc::SIGIO => sigio += 1,
                _ => sigwinch += 1,
            }
        }
        if ready.first().is_some_and(|ready| ready.any()) {
            let mut line = String::new();
            if stdin.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let report = serde_json::json!({"sigio": sigio, "sigwinch": sigwinch});
            (sigio, sigwinch) = (0, 0);
            say(&report.to_string())?;
        }
    }
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
