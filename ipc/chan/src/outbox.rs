//! What a non-blocking sender holds while its peer does not read.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use shoal_proto::Class;

use crate::frame::Frame;

/// Requests and answers in flight on an edge are bounded below this by their own tables; more is a peer that hangs.
const MAX_CONTROL: usize = 32;
/// Ticks and progress: older ones are of no use once so many wait.
const MAX_EVENTS: usize = 64;
/// Captures are large; four keep the pipe full.
const MAX_BULK: usize = 4;
/// Bytes of bulk bodies.
const MAX_BULK_BYTES: u64 = 64 * 1024 * 1024;

/// A frame with copies of its descriptors.
pub(crate) type Waiting = (Frame, Vec<OwnedFd>);

/// Where a frame went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    Queued,
    Dropped,
    Full,
}

/// Queues per class; [`Outbox::next`] empties them in the order of the classes.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    control: VecDeque<Waiting>,
    events: VecDeque<Waiting>,
    bulk: VecDeque<Waiting>,
    bulk_bytes: u64,
    pub(crate) dropped_events: u64,
}

impl Outbox {
    pub(crate) fn is_empty(&self) -> bool {
        self.control.is_empty() && self.events.is_empty() && self.bulk.is_empty()
    }

    /// Whether a frame of this class and length finds room, and if not what becomes of it.
    pub(crate) fn room(&mut self, class: Class, len: u32) -> Placed {
        match class {
            Class::Control if self.control.len() < MAX_CONTROL => Placed::Queued,
            Class::Event if self.events.len() < MAX_EVENTS => Placed::Queued,
            Class::Event => {
                self.dropped_events += 1;
                Placed::Dropped
            }
            Class::Bulk if self.bulk.len() < MAX_BULK && self.bulk_bytes + u64::from(len) <= MAX_BULK_BYTES => {
                Placed::Queued
            }
            Class::Control | Class::Bulk => Placed::Full,
        }
    }

    pub(crate) fn push(&mut self, waiting: Waiting) {
        match waiting.0.class {
            Class::Control => self.control.push_back(waiting),
            Class::Event => self.events.push_back(waiting),
            Class::Bulk => {
                self.bulk_bytes += u64::from(waiting.0.len);
                self.bulk.push_back(waiting);
            }
        }
    }

    /// The frame that goes next.
    pub(crate) fn next(&self) -> Option<&Waiting> {
        self.control.front().or_else(|| self.events.front()).or_else(|| self.bulk.front())
    }

    /// Forgets the frame that [`Outbox::next`] gave.
    pub(crate) fn sent(&mut self) {
        if self.control.pop_front().is_none()
            && self.events.pop_front().is_none()
            && let Some((frame, _fds)) = self.bulk.pop_front()
        {
            self.bulk_bytes -= u64::from(frame.len);
        }
    }
}
