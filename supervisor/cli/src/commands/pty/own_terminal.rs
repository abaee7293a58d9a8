//! The person's own terminal while it shows another one: raw, on its second screen, put back however the command ends.

use std::io::Write as _;

use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use crate::fail::Fail;

/// The second screen, empty.
const ENTER: &str = "\x1b[?1049h\x1b[2J\x1b[H";
/// What a shown program may have switched on goes off: keypad, paste, mouse, attributes, a hidden cursor; then the first
/// screen.
const LEAVE: &str = "\x1b[?2026l\x1b[?1l\x1b>\x1b[?2004l\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\
\x1b[m\x1b[?25h\x1b[?1049l";
/// Reads that wait to be sent; beyond them typing waits.
const AHEAD: usize = 64;

/// It, until dropped.
pub(super) struct OwnTerminal {
    saved: Termios,
}

impl OwnTerminal {
    /// Takes the terminal that stdin and stdout are.
    pub(super) fn enter() -> Result<Self, Fail> {
        let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
        if !isatty(&stdin) || !isatty(&stdout) {
            return Err(Fail::Usage("attach needs a terminal on stdin and stdout; `shoal pty show` prints".to_owned()));
        }
        let failed = |e: rustix::io::Errno| Fail::Said(format!("this terminal: {e}"));
        let saved = tcgetattr(&stdin).map_err(failed)?;
        let mut raw = saved.clone();
        raw.make_raw();
        tcsetattr(&stdin, OptionalActions::Drain, &raw).map_err(failed)?;
        let own = Self { saved };
        own.draw(ENTER.as_bytes())?;
        Ok(own)
    }

    /// Columns and rows.
    pub(super) fn size() -> (u16, u16) {
        match tcgetwinsize(std::io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
            Ok(_) | Err(_) => (80, 24),
        }
    }

    /// Writes to it.
    pub(super) fn draw(&self, bytes: &[u8]) -> Result<(), Fail> {
        let mut out = std::io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush()).map_err(|_| Fail::ClosedOutput)
    }

    /// What is typed, as it comes. The thread that reads ends with the process.
    pub(super) fn keys() -> Result<mpsc::Receiver<Vec<u8>>, Fail> {
        let (tell, keys) = mpsc::channel(AHEAD);
        let read = move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = rustix::io::retry_on_intr(|| rustix::io::read(std::io::stdin(), &mut bytes)) {
                if tell.blocking_send(bytes.get(..count).unwrap_or_default().to_vec()).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("keys".to_owned()).spawn(read);
        thread.map_err(|e| Fail::Said(format!("cannot read keys: {e}")))?;
        Ok(keys)
    }
}

impl Drop for OwnTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing put back.
        self.draw(LEAVE.as_bytes()).ok();
        tcsetattr(std::io::stdin(), OptionalActions::Drain, &self.saved).ok();
    }
}
