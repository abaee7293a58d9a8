//! What waits to be written to one client: whole frames in order, and per subscription no more than its share.
//!
//! Publishers never wait: an event over the share is counted and announced in one frame when the share is free again.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use shoal_wire::limits;
use tokio::sync::Notify;

use crate::bus::{SubId, dropped_frame};

/// Bytes handed to one write; larger frames go alone.
const BATCH: usize = 256 * 1024;

/// A frame that waits.
#[derive(Debug)]
struct Queued {
    bytes: Bytes,
    sub: Option<SubId>,
}

#[derive(Debug)]
enum Bytes {
    Own(Vec<u8>),
    Shared(Rc<[u8]>),
}

impl Bytes {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

/// Share of one subscription.
#[derive(Debug)]
struct Share {
    channel: Rc<str>,
    owner: Option<Rc<str>>,
    events: usize,
    bytes: usize,
    dropped: u64,
    latest: u64,
    ts: i64,
}

/// Whether the connection is still worth writing to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// Frames are written as they come.
    Open,
    /// What is queued is written, then the connection ends.
    Finishing,
    /// It ends now.
    Over,
}

/// The queue of one connection.
#[derive(Debug)]
pub(crate) struct Queue {
    frames: VecDeque<Queued>,
    bytes: usize,
    shares: HashMap<SubId, Share>,
    life: Life,
}

/// Frames for one write.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Whole frames.
    pub(crate) bytes: Vec<u8>,
    /// Subscriptions whose share is free again.
    pub(crate) drained: Vec<SubId>,
}

impl Default for Queue {
    fn default() -> Self {
        Self { frames: VecDeque::new(), bytes: 0, shares: HashMap::new(), life: Life::Open }
    }
}

impl Queue {
    /// Queues an answer. A client that leaves too much unread is given up.
    pub(crate) fn answer(&mut self, frame: Vec<u8>) {
        if self.life == Life::Open {
            self.push(Queued { bytes: Bytes::Own(frame), sub: None });
        }
    }

    /// Makes room for a subscription.
    pub(crate) fn open_share(&mut self, sub: SubId, channel: Rc<str>, owner: Option<Rc<str>>) {
        self.shares.insert(sub, Share { channel, owner, events: 0, bytes: 0, dropped: 0, latest: 0, ts: 0 });
    }

    /// Ends a subscription: nothing of it is sent after what is queued now.
    pub(crate) fn close_share(&mut self, sub: SubId) {
        self.shares.remove(&sub);
    }

    /// Queues an event of a subscription, or counts it as dropped.
    pub(crate) fn event(&mut self, sub: SubId, seq: u64, ts: i64, frame: Rc<[u8]>) {
        let Some(share) = self.shares.get_mut(&sub) else { return };
        let full = share.events >= limits::SUBSCRIPTION_EVENTS
            || (share.events > 0 && share.bytes + frame.len() > limits::SUBSCRIPTION_BYTES);
        if full || share.dropped > 0 {
            share.dropped += 1;
            share.latest = seq;
            share.ts = ts;
            return;
        }
        share.events += 1;
        share.bytes += frame.len();
        if self.life == Life::Open {
            self.push(Queued { bytes: Bytes::Shared(frame), sub: Some(sub) });
        }
    }

    fn push(&mut self, queued: Queued) {
        self.bytes += queued.bytes.as_slice().len();
        self.frames.push_back(queued);
        if self.bytes > limits::UNREAD_OUTPUT_BYTES {
            self.end(Life::Over);
        }
    }

    /// Lets the connection end.
    pub(crate) fn end(&mut self, life: Life) {
        if self.life != Life::Over {
            self.life = life;
        }
        if life == Life::Over {
            self.frames.clear();
            self.shares.clear();
        }
    }

    /// Whether the connection is still worth writing to.
    pub(crate) fn life(&self) -> Life {
        self.life
    }

    /// Takes frames for one write; they stay counted as unread until [`Queue::written`].
    pub(crate) fn take(&mut self) -> Batch {
        let mut batch = Batch::default();
        while let Some(next) = self.frames.front() {
            let len = next.bytes.as_slice().len();
            if !batch.bytes.is_empty() && batch.bytes.len() + len > BATCH {
                break;
            }
            let Some(queued) = self.frames.pop_front() else { break };
            if let Some(sub) = queued.sub {
                self.release(sub, len, &mut batch.drained);
            }
            match queued.bytes {
                Bytes::Own(bytes) if batch.bytes.is_empty() => batch.bytes = bytes,
                other => batch.bytes.extend_from_slice(other.as_slice()),
            }
        }
        batch
    }

    /// Frees the share of a frame that leaves; an empty share announces what it dropped.
    fn release(&mut self, sub: SubId, len: usize, drained: &mut Vec<SubId>) {
        let Some(share) = self.shares.get_mut(&sub) else { return };
        share.events -= 1;
        share.bytes -= len;
        if share.events > 0 {
            return;
        }
        drained.push(sub);
        if share.dropped > 0 {
            let frame = dropped_frame(&share.channel, share.owner.as_deref(), share.dropped, share.latest, share.ts);
            share.dropped = 0;
            self.push(Queued { bytes: Bytes::Own(frame), sub: None });
        }
    }

    /// A batch has left.
    pub(crate) fn written(&mut self, len: usize) {
        self.bytes = self.bytes.saturating_sub(len);
    }
}

/// A queue and the bell of its writer.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    queue: RefCell<Queue>,
    bell: Notify,
}

impl Outgoing {
    /// Changes the queue and rings.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut Queue) -> T) -> T {
        let out = change(&mut self.queue.borrow_mut());
        self.bell.notify_one();
        out
    }

    /// Looks at the queue without ringing.
    pub(crate) fn peek<T>(&self, look: impl FnOnce(&mut Queue) -> T) -> T {
        look(&mut self.queue.borrow_mut())
    }

    /// Waits for a change.
    pub(crate) async fn changed(&self) {
        self.bell.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(batch: &Batch) -> String {
        String::from_utf8(batch.bytes.clone()).expect("text")
    }

    #[test]
    fn frames_leave_whole_and_in_order() {
        let mut queue = Queue::default();
        queue.answer(b"a\n".to_vec());
        queue.answer(b"b\n".to_vec());
        let batch = queue.take();
        assert_eq!(text(&batch), "a\nb\n");
        queue.written(batch.bytes.len());
        assert_eq!(queue.bytes, 0);
        assert!(queue.take().bytes.is_empty());
    }

    #[test]
    fn a_stalled_subscriber_costs_its_share_and_learns_the_rest() {
        let mut queue = Queue::default();
        queue.open_share(1, "user.x".into(), None);
        let frame: Rc<[u8]> = b"e\n".as_slice().into();
        for seq in 0..2000 {
            queue.event(1, seq, 5, frame.clone());
        }
        assert_eq!(queue.bytes, 512);
        let first = queue.take();
        assert_eq!(first.drained, [1]);
        let text = text(&first);
        assert_eq!(text.matches("e\n").count(), 256);
        assert!(
            text.ends_with("\"seq\":1999,\"ts\":5,\"payload\":{\"dropped\":1744,\"latest_seq\":1999}}}\n"),
            "{text}"
        );
        queue.event(1, 2000, 6, frame);
        assert_eq!(queue.take().bytes, b"e\n");
    }

    #[test]
    fn nothing_follows_a_closed_share() {
        let mut queue = Queue::default();
        queue.open_share(1, "user.x".into(), None);
        queue.close_share(1);
        queue.event(1, 0, 0, b"e\n".as_slice().into());
        assert!(queue.take().bytes.is_empty());
    }

    #[test]
    fn a_client_that_never_reads_is_given_up_and_its_output_freed() {
        let mut queue = Queue::default();
        for _ in 0..33 {
            queue.answer(vec![b'x'; 1024 * 1024]);
        }
        assert_eq!(queue.life(), Life::Over);
        assert!(queue.frames.is_empty());
    }

    #[test]
    fn unwritten_batches_still_count() {
        let mut queue = Queue::default();
        queue.answer(vec![b'x'; 20 * 1024 * 1024]);
        let batch = queue.take();
        queue.answer(vec![b'x'; 20 * 1024 * 1024]);
        assert_eq!(queue.life(), Life::Over);
        queue.written(batch.bytes.len());
    }
}
