//! A running kernel.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use crate::client::Client;
use crate::place::Place;
use crate::{processes, until};

/// A kernel in a place. Dropping it ends it by SIGTERM and checks that every process of its tree is gone.
#[derive(Debug)]
pub struct Kernel {
    child: Child,
    socket: PathBuf,
    log: Arc<Mutex<String>>,
    readers: Vec<std::thread::JoinHandle<()>>,
    ended: bool,
}

impl Kernel {
    /// Starts a kernel with default flags and waits until it is ready.
    pub fn start(place: &Place) -> Self {
        Self::start_with(place, |_| {})
    }

    /// Starts a kernel whose command line `change` may extend, and waits for its line `ready PATH`.
    pub fn start_with(place: &Place, change: impl FnOnce(&mut Command)) -> Self {
        let mut command = place.shoal("shoal-kernel");
        change(&mut command);
        Self::run(place, command)
    }

    /// Starts a kernel by a program that becomes it; `by` gets the kernel's path and makes the command.
    pub fn start_by(place: &Place, by: impl FnOnce(&Path) -> Command) -> Self {
        let command = by(&place.program("shoal-kernel"));
        Self::run(place, command)
    }

    fn run(place: &Place, mut command: Command) -> Self {
        let socket = place.path("run").join("k.sock");
        command.arg("--socket").arg(&socket).arg("--state-dir").arg(place.state());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("shoal-kernel starts");
        let log = Arc::new(Mutex::new(String::new()));
        let mut stderr = child.stderr.take().expect("piped");
        let kept = Arc::clone(&log);
        let errors = std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(got) = stderr.read(&mut chunk) {
                if got == 0 {
                    break;
                }
                let text = String::from_utf8_lossy(&chunk[..got]).into_owned();
                kept.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
            }
        });
        let (tell, told) = std::sync::mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let output = std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        let mut kernel = Self { child, socket: socket.clone(), log, readers: vec![errors, output], ended: false };
        match told.recv_timeout(crate::patience()) {
            Ok(line) => assert_eq!(line, format!("ready {}", socket.display()), "{}", kernel.log()),
            Err(e) => {
                kernel.ended = true;
                let status = kernel.child.try_wait();
                let killed = kernel.child.kill();
                panic!("no readiness line ({e}); status {status:?}, {killed:?}; log:\n{}", kernel.log());
            }
        }
        kernel
    }

    /// Pid of the supervisor.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid")
    }

    /// Path of the socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// What it said on stderr so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A new connection, not attached.
    pub fn connect(&self) -> Client {
        Client::connect(&self.socket)
    }

    /// A new connection attached to a session of the local user.
    pub fn attach(&self, session: &str) -> Client {
        let mut client = self.connect();
        client.attach(session);
        client
    }

    /// Host pids of the processes whose name starts with `comm`, below the supervisor.
    pub fn pids_of(&self, comm: &str) -> Vec<i32> {
        processes::tree(self.pid()).into_iter().filter(|p| p.comm.starts_with(comm)).map(|p| p.pid).collect()
    }

    /// Sends SIGTERM and waits for the end.
    pub fn stop(mut self) -> ExitStatus {
        self.end()
    }

    fn end(&mut self) -> ExitStatus {
        self.ended = true;
        let tree = processes::tree(self.pid());
        processes::signal(self.pid(), nix::sys::signal::Signal::SIGTERM);
        let mut status = None;
        until("the kernel ends after SIGTERM", || {
            status = self.child.try_wait().expect("the child is ours");
            status.is_some()
        });
        for reader in self.readers.drain(..) {
            reader.join().expect("readers do not panic");
        }
        let left: Vec<_> =
            tree.iter().filter(|p| processes::read(p.pid).is_some_and(|now| now.comm == p.comm)).collect();
        assert!(left.is_empty(), "left after the kernel: {left:?}\n{}", self.log());
        status.expect("waited for")
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if std::thread::panicking() {
            // The test failed already: end it, show what the kernel said, and say nothing more.
            eprintln!("kernel log:\n{}", self.log());
            for process in processes::tree(self.pid()) {
                if processes::is_running(process.pid) {
                    let pid = nix::unistd::Pid::from_raw(process.pid);
                    if let Err(e) = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL) {
                        eprintln!("cannot kill {pid}: {e}");
                    }
                }
            }
            return;
        }
        self.end();
    }
}
