//! Bytes on their way to a program. Writing never waits: what the terminal does not take stays here until it does.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;

/// How long a send may take; what is not written by then is dropped.
pub(crate) const SEND_TIME: Duration = Duration::from_secs(4);
/// Bytes of answers that may wait for a program that does not read.
const MAX_ANSWERS: usize = 64 * 1024;

/// A send, or an answer of the emulator (without a call).
#[derive(Debug)]
struct Write {
    call: Option<u64>,
    bytes: Vec<u8>,
    at: usize,
    due: Instant,
}

/// A send that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Over {
    /// Number of the request.
    pub(crate) call: u64,
    /// Bytes written.
    pub(crate) sent: u64,
    /// All of it.
    pub(crate) complete: bool,
}

/// The queue of one terminal.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    queue: VecDeque<Write>,
    answers: usize,
}

impl Writes {
    /// Queues a send.
    pub(crate) fn send(&mut self, call: u64, bytes: Vec<u8>, now: Instant) {
        let due = now.checked_add(SEND_TIME).unwrap_or(now);
        self.queue.push_back(Write { call: Some(call), bytes, at: 0, due });
    }

    /// Queues an answer before everything that has not begun: the program waits for it.
    pub(crate) fn answer(&mut self, bytes: Vec<u8>, now: Instant) {
        if bytes.is_empty() || self.answers.saturating_add(bytes.len()) > MAX_ANSWERS {
            return;
        }
        self.answers = self.answers.saturating_add(bytes.len());
        let begun = self.queue.iter().take_while(|write| write.at > 0 || write.call.is_none()).count();
        let due = now.checked_add(SEND_TIME).unwrap_or(now);
        self.queue.insert(begun, Write { call: None, bytes, at: 0, due });
    }

    /// Whether something waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// When the first of them is given up.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.queue.iter().map(|write| write.due).min()
    }

    /// Writes what the terminal takes, and says which sends are over. Without a leader nothing is taken yet.
    pub(crate) fn flush(&mut self, leader: Option<BorrowedFd<'_>>, now: Instant) -> Vec<Over> {
        let mut over = Vec::new();
        let mut broken = false;
        while let (Some(write), Some(leader)) = (self.queue.front_mut(), leader) {
            let rest = write.bytes.get(write.at..).unwrap_or_default();
            if rest.is_empty() {
                self.end_first(true, &mut over);
                continue;
            }
            match rustix::io::write(leader, rest) {
                Ok(n) => write.at = write.at.saturating_add(n),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    broken = true;
                    break;
                }
            }
        }
        while self.queue.iter().any(|write| broken || write.due <= now) {
            let late = self.queue.iter().position(|write| broken || write.due <= now).unwrap_or(0);
            self.queue.rotate_left(late);
            self.end_first(false, &mut over);
            let back = late.min(self.queue.len());
            self.queue.rotate_right(back);
        }
        over
    }

    /// Gives up everything: the program is gone.
    pub(crate) fn abandon(&mut self) -> Vec<Over> {
        let mut over = Vec::new();
        while !self.queue.is_empty() {
            self.end_first(false, &mut over);
        }
        over
    }

    fn end_first(&mut self, complete: bool, over: &mut Vec<Over>) {
        let Some(write) = self.queue.pop_front() else { return };
        match write.call {
            Some(call) => over.push(Over { call, sent: u64::try_from(write.at).unwrap_or(u64::MAX), complete }),
            None => self.answers = self.answers.saturating_sub(write.bytes.len()),
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "an origin for the handed-in clock")]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;

    fn pipe() -> (std::os::fd::OwnedFd, std::os::fd::OwnedFd) {
        let (read, write) = shoal_sys::fd::pipe().expect("a pipe");
        shoal_sys::fd::set_nonblocking(&write, true).expect("set");
        (read, write)
    }

    #[test]
    fn a_full_terminal_keeps_the_rest_until_the_time_is_over() {
        let (_read, write) = pipe();
        let (mut writes, now) = (Writes::default(), Instant::now());
        writes.send(1, vec![b'x'; 1_000_000], now);
        writes.send(2, b"y".to_vec(), now);
        assert_eq!(writes.flush(Some(write.as_fd()), now), []);
        let over = writes.flush(Some(write.as_fd()), now + SEND_TIME);
        assert_eq!(over.len(), 2);
        assert!(!over[0].complete && over[0].sent > 0 && over[0].sent < 1_000_000);
        assert_eq!(over[1], Over { call: 2, sent: 0, complete: false });
        assert!(writes.is_empty());
    }

    #[test]
    fn answers_go_first_but_never_into_a_begun_send() {
        let (read, write) = pipe();
        let (mut writes, now) = (Writes::default(), Instant::now());
        writes.send(1, b"typed".to_vec(), now);
        writes.answer(b"answer".to_vec(), now);
        assert_eq!(writes.flush(Some(write.as_fd()), now), [Over { call: 1, sent: 5, complete: true }]);
        let mut buffer = [0; 32];
        let n = rustix::io::read(&read, &mut buffer).expect("read");
        assert_eq!(&buffer[..n], b"answertyped");
    }

    #[test]
    fn without_a_leader_it_waits_and_without_a_program_it_ends() {
        let (mut writes, now) = (Writes::default(), Instant::now());
        writes.send(1, b"x".to_vec(), now);
        assert_eq!(writes.flush(None, now), []);
        assert_eq!(writes.abandon(), [Over { call: 1, sent: 0, complete: false }]);
    }
}
