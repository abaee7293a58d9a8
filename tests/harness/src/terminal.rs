//! A program on a terminal of its own, as a person sees it: keys go in, a screen comes out.

use std::ffi::CString;
use std::io::Read as _;
use std::num::NonZeroU16;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use shoal_sys::process::Exit;
use shoal_sys::spawn::{Command, Program};

use crate::Place;

/// A program on a terminal. Dropping it ends the program.
#[derive(Debug)]
pub struct Terminal {
    leader: Arc<std::fs::File>,
    child: shoal_sys::pidfd::Pidfd,
    shared: Arc<Shared>,
    ended: Option<Exit>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shared")
    }
}

struct State {
    parser: vt100::Parser<Answers>,
    closed: bool,
}

/// What a terminal answers to questions: where the cursor is, and what it is.
#[derive(Default)]
struct Answers(Vec<u8>);

impl vt100::Callbacks for Answers {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        _second: Option<u8>,
        params: &[&[u16]],
        last: char,
    ) {
        let (row, col) = screen.cursor_position();
        match (first, params, last) {
            (None, [[6]], 'n') => self.0.extend(format!("\x1b[{};{}R", row + 1, col + 1).bytes()),
            (None, _, 'c') => self.0.extend(b"\x1b[?62c"),
            _ => {}
        }
    }
}

impl Terminal {
    /// Starts one of the programs under test on a terminal of `cols` by `rows`, as the place's user; `env` is laid over
    /// the place's environment.
    pub fn start(place: &Place, program: &str, args: &[&str], (cols, rows): (u16, u16), env: &[(&str, &str)]) -> Self {
        let pty = shoal_sys::pty::open(cols, rows).expect("a terminal");
        let text = |bytes: &[u8]| CString::new(bytes).expect("no NUL");
        let mut words = Vec::new();
        if crate::place::is_root() && place.uid() != 0 {
            let id = place.uid().to_string();
            words.extend(
                ["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups", "--"].map(|w| text(w.as_bytes())),
            );
        }
        words.push(text(place.program(program).as_os_str().as_bytes()));
        words.extend(args.iter().map(|arg| text(arg.as_bytes())));
        let first = match words.first().map(|word| word.as_bytes()) {
            Some(b"setpriv") => text(b"/usr/bin/setpriv"),
            _ => words.first().cloned().expect("a program"),
        };
        let mut variables: std::collections::BTreeMap<Vec<u8>, Vec<u8>> = place
            .command(program)
            .get_envs()
            .filter_map(|(name, value)| Some((name.as_bytes().to_vec(), value?.as_bytes().to_vec())))
            .collect();
        variables.insert(b"TERM".to_vec(), b"xterm-256color".to_vec());
        variables.extend(env.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())));
        let env = variables.iter().map(|(name, value)| text(&[name, &b"="[..], value].concat())).collect();
        // The program opens the terminal by name, too, and it belongs to whoever made it.
        std::os::unix::fs::fchown(&pty.follower, Some(place.uid()), None).expect("given to the user");
        let side = pty.follower.as_fd();
        let child = Command::new(Program::Path(first), words)
            .env(env)
            .cwd(text(place.work().as_os_str().as_bytes()))
            .fds(vec![side, side, side])
            .setsid()
            .controlling_tty()
            .spawn()
            .expect("the program starts");
        let leader = Arc::new(std::fs::File::from(pty.leader));
        let size = |n: u16| NonZeroU16::new(n).expect("not zero");
        let parser = vt100::Parser::new_with_callbacks(size(rows), size(cols), 0, Answers::default());
        let shared = Arc::new(Shared { state: Mutex::new(State { parser, closed: false }), changed: Condvar::new() });
        std::thread::spawn({
            let (leader, shared) = (Arc::clone(&leader), Arc::clone(&shared));
            move || shared.read(&leader)
        });
        Self { leader, child: child.pidfd, shared, ended: None }
    }

    /// Types text as it is; Enter is `\r`.
    pub fn type_text(&self, text: &str) {
        std::io::Write::write_all(&mut &*self.leader, text.as_bytes()).expect("the terminal takes keys");
    }

    /// The screen now, a line for a row.
    pub fn screen(&self) -> String {
        self.shared.locked().parser.screen().contents()
    }

    /// Looks at the screen with its colours.
    pub fn with_screen<T>(&self, look: impl FnOnce(&vt100::Screen) -> T) -> T {
        look(self.shared.locked().parser.screen())
    }

    /// Waits until the screen holds `text` and returns it.
    pub fn see(&self, text: &str) -> String {
        self.see_that(&format!("{text:?} on the screen"), |screen| screen.contains(text))
    }

    /// Waits until a row of the screen is `text`, but for spaces at its end.
    pub fn see_row(&self, text: &str) -> String {
        self.see_that(&format!("a row {text:?}"), |screen| screen.lines().any(|row| row.trim_end() == text))
    }

    /// Waits until the screen does not hold `text` any more.
    pub fn see_gone(&self, text: &str) -> String {
        self.see_that(&format!("no {text:?} on the screen"), |screen| !screen.contains(text))
    }

    /// Waits until the screen is as wanted, for at most [`crate::patience`].
    pub fn see_that(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + crate::patience();
        let mut state = self.shared.locked();
        loop {
            let screen = state.parser.screen().contents();
            if wanted(&screen) {
                return screen;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !state.closed, "waited in vain for {what}; the screen:\n{screen}");
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for the end of the program.
    pub fn end(&mut self) -> Exit {
        let child = &self.child;
        let mut exit = self.ended;
        if exit.is_none() {
            crate::until("the program on the terminal ends", || {
                exit = child.try_reap().expect("a child of ours");
                exit.is_some()
            });
        }
        self.ended = exit;
        exit.expect("waited for")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.ended.is_none() {
            match self.child.signal(nix::sys::signal::Signal::SIGKILL as i32) {
                Ok(_) => drop(self.end()),
                Err(e) => eprintln!("cannot end the program on the terminal: {e}"),
            }
        }
    }
}

impl Shared {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Feeds the screen until the program's side is closed.
    fn read(&self, mut leader: &std::fs::File) {
        let mut chunk = [0; 8192];
        loop {
            // The last closed follower answers EIO.
            let got = leader.read(&mut chunk).unwrap_or(0);
            let mut state = self.locked();
            state.parser.process(&chunk[..got]);
            let answers = std::mem::take(&mut state.parser.callbacks_mut().0);
            state.closed = got == 0;
            drop(state);
            self.changed.notify_all();
            if got == 0 {
                break;
            }
            if std::io::Write::write_all(&mut leader, &answers).is_err() {
                break;
            }
        }
    }
}
