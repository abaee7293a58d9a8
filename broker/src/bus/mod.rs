//! Event bus: channels by (owner, name), their rings, and who listens.
//!
//! The bus is pure: publishing returns the frames to deliver. Durable channels (`journal`, `session.transcript`) keep
//! their history in the journal; here they only have listeners and a next number.

mod frame;
#[cfg(test)]
mod paging;
mod ring;

use std::collections::HashMap;
use std::rc::Rc;

pub(crate) use frame::{dropped_frame, event_frame};
use ring::Ring;
pub(crate) use ring::{Event, MAX_PAGE_BYTES, Page, RESERVE};

use crate::clients::ConnId;

/// Owner and name of a channel.
pub(crate) type ChannelKey = (Rc<str>, Rc<str>);
/// Number of a subscription; never used twice.
pub(crate) type SubId = u64;

/// Payload of the first event of a channel whose history went with a broker.
const HISTORY_LOST: &str = r#"{"$":"record","v":{"error":{"$":"str","v":"history_lost"}}}"#;

/// The history of a channel is in the journal.
pub(crate) fn is_durable(channel: &str) -> bool {
    matches!(channel, "journal" | "session.transcript")
}

/// How far a subscription is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It gets events as they are published.
    Live,
    /// It first gets retained events above this number.
    CatchUp {
        /// Last number it got.
        after: u64,
    },
}

/// One subscription.
#[derive(Clone, Debug)]
pub(crate) struct Subscription {
    /// Its number.
    pub(crate) id: SubId,
    /// Whose it is.
    pub(crate) conn: ConnId,
    /// The pushes name the owner.
    pub(crate) with_owner: bool,
    /// How far it is.
    pub(crate) stage: Stage,
}

/// A frame for a subscription.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    /// The connection.
    pub(crate) conn: ConnId,
    /// The subscription.
    pub(crate) sub: SubId,
    /// Number of the event.
    pub(crate) seq: u64,
    /// The frame.
    pub(crate) frame: Rc<[u8]>,
}

/// What became of a publication.
#[derive(Debug, Default)]
pub(crate) struct Published {
    /// Its number.
    pub(crate) seq: u64,
    /// Frames for live subscriptions.
    pub(crate) deliveries: Vec<Delivery>,
    /// Numbers of this channel up to the mark have to be reserved in the journal.
    pub(crate) reserve: Option<u64>,
}

#[derive(Debug, Default)]
struct Channel {
    ring: Ring,
    subs: Vec<Subscription>,
    /// Next number of a durable channel, as the journal last told.
    durable_next: u64,
}

/// All channels of the kernel.
#[derive(Debug, Default)]
pub(crate) struct Bus {
    channels: HashMap<ChannelKey, Channel>,
    /// Where channels of an earlier broker continue.
    marks: HashMap<ChannelKey, u64>,
    next_sub: SubId,
}

impl Bus {
    /// A bus whose channels continue at the marks an earlier broker reserved, of which a block more is reserved by now; for
    /// durable ones the next number.
    pub(crate) fn resume(marks: impl IntoIterator<Item = (ChannelKey, u64)>) -> Self {
        Self { marks: marks.into_iter().collect(), ..Self::default() }
    }

    fn channel(&mut self, key: &ChannelKey, ts: i64) -> &mut Channel {
        if !self.channels.contains_key(key) {
            let mut channel = Channel::default();
            if let Some(mark) = self.marks.remove(key) {
                if is_durable(&key.1) {
                    channel.durable_next = mark;
                } else {
                    channel.ring = Ring::resume(mark);
                    channel.ring.push(ts, HISTORY_LOST.into());
                }
            }
            self.channels.insert(key.clone(), channel);
        }
        self.channels.entry(key.clone()).or_default()
    }

    /// Publishes on a ring channel.
    pub(crate) fn publish(&mut self, key: &ChannelKey, ts: i64, payload: &str) -> Published {
        let channel = self.channel(key, ts);
        let (event, reserve) = channel.ring.push(ts, payload.into());
        let shown = channel.ring.shows(event.seq);
        let deliveries = if shown { deliveries(key, &channel.subs, &event) } else { Vec::new() };
        Published { seq: event.seq, deliveries, reserve }
    }

    /// A mark of a ring channel is in the database: the frames that waited for it.
    pub(crate) fn marked(&mut self, key: &ChannelKey, mark: u64) -> Vec<Delivery> {
        let Some(channel) = self.channels.get_mut(key) else { return Vec::new() };
        let shown = channel.ring.mark(mark);
        shown.iter().flat_map(|event| deliveries(key, &channel.subs, event)).collect()
    }

    /// A number of a ring channel may be shown.
    pub(crate) fn shows(&self, key: &ChannelKey, seq: u64) -> bool {
        self.channels.get(key).is_none_or(|channel| channel.ring.shows(seq))
    }

    /// Announces an event of a durable channel, already numbered by the journal.
    pub(crate) fn announce(&mut self, key: &ChannelKey, event: &Event) -> Vec<Delivery> {
        let channel = self.channel(key, event.ts);
        channel.durable_next = event.seq + 1;
        deliveries(key, &channel.subs, event)
    }

    /// A page of a ring channel.
    pub(crate) fn page(&mut self, key: &ChannelKey, ts: i64, since: Option<u64>, limit: usize) -> Page {
        if !self.channels.contains_key(key) && !self.marks.contains_key(key) {
            return Page::default();
        }
        self.channel(key, ts).ring.page(since, limit)
    }

    /// Subscribes; a repeated one keeps the first. Returns its number, the channel's next number, and whether events
    /// above `since` are gone already (rings only).
    pub(crate) fn subscribe(
        &mut self,
        key: &ChannelKey,
        ts: i64,
        conn: ConnId,
        with_owner: bool,
        since: Option<u64>,
    ) -> Subscribed {
        self.next_sub += 1;
        let id = self.next_sub;
        let durable = is_durable(&key.1);
        let channel = self.channel(key, ts);
        let next_seq = if durable { channel.durable_next } else { channel.ring.next_seq() };
        if let Some(known) = channel.subs.iter().find(|sub| sub.conn == conn && sub.with_owner == with_owner) {
            return Subscribed { sub: known.id, fresh: false, next_seq, history_lost: false };
        }
        let history_lost = !durable && since.is_some() && channel.ring.page(since, 0).history_lost;
        let stage = since.map_or(Stage::Live, |after| Stage::CatchUp { after });
        channel.subs.push(Subscription { id, conn, with_owner, stage });
        Subscribed { sub: id, fresh: true, next_seq, history_lost }
    }

    /// The subscription of a number, with its channel.
    pub(crate) fn find(&self, sub: SubId) -> Option<(ChannelKey, Subscription)> {
        self.channels
            .iter()
            .find_map(|(key, channel)| channel.subs.iter().find(|s| s.id == sub).map(|s| (key.clone(), s.clone())))
    }

    /// Moves a subscription on.
    pub(crate) fn advance(&mut self, key: &ChannelKey, sub: SubId, stage: Stage) {
        let channel = self.channels.get_mut(key);
        if let Some(sub) = channel.and_then(|channel| channel.subs.iter_mut().find(|s| s.id == sub)) {
            sub.stage = stage;
        }
    }

    /// Ends one subscription; its number when there was one.
    pub(crate) fn unsubscribe(&mut self, key: &ChannelKey, conn: ConnId) -> Vec<SubId> {
        let Some(channel) = self.channels.get_mut(key) else { return Vec::new() };
        let gone = channel.subs.iter().filter(|sub| sub.conn == conn).map(|sub| sub.id).collect();
        channel.subs.retain(|sub| sub.conn != conn);
        gone
    }

    /// Ends every subscription of a connection.
    pub(crate) fn forget_connection(&mut self, conn: ConnId) -> Vec<SubId> {
        let mut gone = Vec::new();
        for channel in self.channels.values_mut() {
            gone.extend(channel.subs.iter().filter(|sub| sub.conn == conn).map(|sub| sub.id));
            channel.subs.retain(|sub| sub.conn != conn);
        }
        gone
    }

    /// Subscriptions to channels of an owner.
    pub(crate) fn subscriptions_of(&self, owner: &str) -> usize {
        self.channels.iter().filter(|((of, _), _)| &**of == owner).map(|(_, channel)| channel.subs.len()).sum()
    }

    /// User channels of an owner.
    pub(crate) fn user_channels_of(&self, owner: &str) -> usize {
        let live = self.channels.iter().filter(|(_, channel)| channel.ring.is_used()).map(|(key, _)| key);
        live.chain(self.marks.keys()).filter(|(of, name)| &**of == owner && name.starts_with("user.")).count()
    }

    /// The channel has had events.
    pub(crate) fn exists(&self, key: &ChannelKey) -> bool {
        self.marks.contains_key(key) || self.channels.get(key).is_some_and(|channel| channel.ring.is_used())
    }

    /// Drops a channel whose object is gone.
    pub(crate) fn drop_channel(&mut self, key: &ChannelKey) {
        self.channels.remove(key);
        self.marks.remove(key);
    }
}

/// A new or known subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subscribed {
    /// Its number.
    pub(crate) sub: SubId,
    /// It did not exist before.
    pub(crate) fresh: bool,
    /// The number the channel's next event gets.
    pub(crate) next_seq: u64,
    /// Events above `since` are gone.
    pub(crate) history_lost: bool,
}

fn deliveries(key: &ChannelKey, subs: &[Subscription], event: &Event) -> Vec<Delivery> {
    let mut frames: [Option<Rc<[u8]>>; 2] = [None, None];
    let mut out = Vec::new();
    for sub in subs.iter().filter(|sub| sub.stage == Stage::Live) {
        let owner = sub.with_owner.then_some(&*key.0);
        let [plain, owned] = &mut frames;
        let slot = if sub.with_owner { owned } else { plain };
        let frame = slot.get_or_insert_with(|| event_frame(&key.1, owner, event).into()).clone();
        out.push(Delivery { conn: sub.conn, sub: sub.id, seq: event.seq, frame });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(owner: &str, name: &str) -> ChannelKey {
        (owner.into(), name.into())
    }

    /// Publishes, with a database that takes every mark at once.
    fn publish(bus: &mut Bus, key: &ChannelKey, ts: i64, payload: &str) -> Published {
        let mut published = bus.publish(key, ts, payload);
        if let Some(mark) = published.reserve {
            published.deliveries.extend(bus.marked(key, mark));
        }
        published
    }

    #[test]
    fn live_subscribers_get_events_of_their_owner_only() {
        let mut bus = Bus::default();
        let (mine, theirs) = (key("a", "user.x"), key("b", "user.x"));
        publish(&mut bus, &mine, 1, "0");
        let subscribed = bus.subscribe(&mine, 1, ConnId(7), false, None);
        assert_eq!((subscribed.fresh, subscribed.next_seq), (true, 1));
        assert_eq!(publish(&mut bus, &theirs, 2, "1").deliveries.len(), 0);
        let published = publish(&mut bus, &mine, 3, r#"{"a":1}"#);
        assert_eq!(published.seq, 1);
        let frame = String::from_utf8(published.deliveries[0].frame.to_vec()).expect("text");
        assert_eq!(
            frame,
            "{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{\"channel\":\"user.x\",\"seq\":1,\"ts\":3,\"payload\":{\"a\":1}}}\n"
        );
    }

    #[test]
    fn repeating_a_subscription_keeps_the_first() {
        let mut bus = Bus::default();
        let key = key("a", "user.x");
        let first = bus.subscribe(&key, 0, ConnId(1), false, None);
        let again = bus.subscribe(&key, 0, ConnId(1), false, Some(0));
        assert_eq!((again.fresh, again.sub), (false, first.sub));
        assert_eq!(publish(&mut bus, &key, 0, "1").deliveries.len(), 1);
        assert_eq!(bus.unsubscribe(&key, ConnId(1)), [first.sub]);
        assert_eq!(publish(&mut bus, &key, 0, "1").deliveries.len(), 0);
    }

    #[test]
    fn a_catching_up_subscriber_gets_nothing_live() {
        let mut bus = Bus::default();
        let key = key("a", "user.x");
        publish(&mut bus, &key, 0, "0");
        let subscribed = bus.subscribe(&key, 0, ConnId(1), false, Some(0));
        assert!(publish(&mut bus, &key, 0, "1").deliveries.is_empty());
        bus.advance(&key, subscribed.sub, Stage::Live);
        assert_eq!(publish(&mut bus, &key, 0, "2").deliveries.len(), 1);
    }

    #[test]
    fn a_resumed_channel_opens_with_history_lost() {
        let key = key("a", "user.x");
        let mut bus = Bus::resume([(key.clone(), 1024)]);
        let page = bus.page(&key, 5, Some(3), 10);
        assert!(page.history_lost);
        assert_eq!((page.events[0].seq, &*page.events[0].payload), (1024, HISTORY_LOST));
        assert_eq!(publish(&mut bus, &key, 6, "1").seq, 1025);
    }
}
