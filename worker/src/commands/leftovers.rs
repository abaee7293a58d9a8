//! Pipes that left-behind processes still hold after their command ended.
//!
//! One thread reads them all until their last writer is gone, so that nobody is killed by a closed pipe and nothing
//! blocks on a full one. What comes goes to the task log of the run, if that is still kept.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use shoal_sys::poll::{self, Ready};

use crate::output::{OutputLog, Stream};

/// Pipes read at a time; the descriptor limit of the session is usually met first. Beyond it the oldest is closed.
const MAX_PIPES: usize = 1024;
const CHUNK: usize = 64 * 1024;

/// A pipe nobody waits for.
pub(super) struct Leftover {
    /// Its read end, non-blocking.
    pub(super) pipe: OwnedFd,
    /// Where its bytes go.
    pub(super) log: Option<Arc<OutputLog>>,
    /// What it was.
    pub(super) stream: Stream,
}

/// The thread's inbox.
pub(super) struct Leftovers {
    sender: Mutex<Sender<Leftover>>,
    wake: OwnedFd,
}

impl Leftovers {
    /// Starts the thread.
    pub(super) fn start() -> std::io::Result<Self> {
        let (sender, receiver) = channel();
        let (readable, wake) = shoal_sys::fd::pipe()?;
        shoal_sys::fd::set_nonblocking(&readable, true)?;
        shoal_sys::fd::set_nonblocking(&wake, true)?;
        std::thread::Builder::new().name("leftovers".into()).spawn(move || read_all(&receiver, &readable))?;
        Ok(Self { sender: Mutex::new(sender), wake })
    }

    /// Hands over a pipe.
    pub(super) fn take(&self, leftover: Leftover) {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        if sender.send(leftover).is_ok() {
            let _full: rustix::io::Result<usize> = rustix::io::write(&self.wake, &[0]);
        }
    }
}

fn read_all(receiver: &Receiver<Leftover>, readable: &OwnedFd) {
    let mut pipes: Vec<Leftover> = Vec::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        let interests: Vec<_> = std::iter::once(readable.as_fd())
            .chain(pipes.iter().map(|l| l.pipe.as_fd()))
            .map(|fd| (fd, Ready::READ))
            .collect();
        let Ok(ready) = poll::poll(&interests, None) else { return };
        let mut flags = ready.into_iter();
        if flags.next().is_some_and(Ready::any) {
            while rustix::io::read(readable, &mut chunk[..64]).is_ok_and(|n| n > 0) {}
        }
        let mut flags = flags.collect::<Vec<_>>().into_iter();
        pipes.retain(|leftover| !flags.next().is_some_and(Ready::any) || read_some(leftover, &mut chunk));
        while let Ok(leftover) = receiver.try_recv() {
            if pipes.len() == MAX_PIPES {
                pipes.remove(0);
            }
            pipes.push(leftover);
        }
    }
}

/// Reads once; `false` at the end.
fn read_some(leftover: &Leftover, chunk: &mut [u8]) -> bool {
    match rustix::io::read(&leftover.pipe, &mut *chunk) {
        Ok(0) => false,
        Ok(n) => {
            if let Some(log) = &leftover.log {
                log.append(leftover.stream, &chunk[..n]);
            }
            true
        }
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => true,
        Err(_) => false,
    }
}
