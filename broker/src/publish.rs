//! Events on their way: published, reserved, delivered, refilled; and the events the broker makes itself.

use std::rc::Rc;

use serde_json::{Value, json};
use shoal_journal::{JournalError, Kind, Row};

use crate::broker::Broker;
use crate::bus::{ChannelKey, Delivery, Event, Stage, SubId, event_frame, is_durable};
use crate::clients::ConnId;
use crate::json::{tagged_list, tagged_opt, tagged_record, tagged_str};
use crate::record::{durable_event, mark_counter};
use crate::sessions::Sid;

/// Retained events handed to a subscription that catches up, per refill.
const REFILL: u32 = 128;

impl Broker {
    /// Publishes on a ring channel; its number and time.
    pub(crate) fn publish(&mut self, owner: &Rc<str>, channel: &str, payload: &str) -> (u64, i64) {
        let ts = self.now.ns;
        let key: ChannelKey = (owner.clone(), channel.into());
        let published = self.bus.publish(&key, ts, payload);
        let is_shown = self.bus.shows(&key, published.seq);
        if let Some(mark) = published.reserve {
            self.reserve(key, mark);
        }
        self.deliver(published.deliveries, ts);
        // Who reads before an event is shown would see nothing and not look again.
        if is_shown {
            self.tell_listeners(owner, channel);
        }
        (published.seq, ts)
    }

    /// Writes a mark; what is above the one before is shown after that. A mark that cannot be written holds nobody: that
    /// the journal is away is itself an event.
    fn reserve(&mut self, key: ChannelKey, mark: u64) {
        let name = mark_counter(&key.0, &key.1);
        let value = i64::try_from(mark).unwrap_or(i64::MAX);
        // Numbers of tasks and terminals come never again, so their channels end with the kernel.
        let synced = !is_of_object(&key.1);
        let job = move |store: &mut shoal_journal::Store| store.raise_counter(&name, value);
        let go_on = move |broker: &mut Self, written: Result<(), JournalError>| {
            log_unwritten(broker, written);
            let deliveries = broker.bus.marked(&key, mark);
            let now = broker.now.ns;
            broker.deliver(deliveries, now);
            broker.tell_listeners(&key.0, &key.1);
            let (due, rest) = std::mem::take(&mut broker.until_shown)
                .into_iter()
                .partition(|(waits, seq, _)| *waits == key && broker.bus.shows(&key, *seq));
            broker.until_shown = rest;
            let due: Vec<crate::broker::UntilShown> = due;
            due.into_iter().for_each(|(_, _, then)| then(broker, ()));
        };
        if synced { self.write_synced(job, go_on) } else { self.write(job, go_on) }
    }

    /// Calls `then` once the number of an event may be told.
    pub(crate) fn when_shown(
        &mut self,
        owner: &Rc<str>,
        channel: &str,
        seq: u64,
        then: impl FnOnce(&mut Self) + 'static,
    ) {
        let key: ChannelKey = (owner.clone(), channel.into());
        if self.bus.shows(&key, seq) {
            return then(self);
        }
        self.until_shown.push((key, seq, Box::new(|broker, ()| then(broker))));
    }

    /// Announces an event that the journal numbered.
    pub(crate) fn announce(&mut self, owner: &Rc<str>, channel: &str, event: &Event) {
        let deliveries = self.bus.announce(&(owner.clone(), channel.into()), event);
        self.deliver(deliveries, event.ts);
        self.tell_listeners(owner, channel);
    }

    fn deliver(&mut self, deliveries: Vec<Delivery>, ts: i64) {
        for Delivery { conn, sub, seq, frame } in deliveries {
            if let Some(client) = self.clients.at(conn) {
                client.out.with(|queue| queue.event(sub, seq, ts, frame));
            }
        }
    }

    /// Drops the channel of an object that is gone, and its mark.
    pub(crate) fn drop_channel(&mut self, owner: &Rc<str>, channel: &str) {
        let key: ChannelKey = (owner.clone(), channel.into());
        if self.bus.exists(&key) {
            let name = mark_counter(owner, channel);
            self.write(move |store| store.delete_counter(&name), log_unwritten);
        }
        self.bus.drop_channel(&key);
    }

    /// A subscription has room again: one that catches up gets more.
    pub(crate) fn on_drained(&mut self, conn: ConnId, sub: SubId) {
        let Some((key, subscription)) = self.bus.find(sub) else { return };
        if let Stage::CatchUp { after } = subscription.stage
            && subscription.conn == conn
        {
            self.refill(&key, conn, sub, subscription.with_owner, Some(after));
        }
    }

    /// Hands a subscription retained events above `after`, until there are none and it is live.
    pub(crate) fn refill(&mut self, key: &ChannelKey, conn: ConnId, sub: SubId, with_owner: bool, after: Option<u64>) {
        if !is_durable(&key.1) {
            let page = self.bus.page(key, self.now.ns, after, REFILL as usize);
            return self.refilled(key, conn, sub, with_owner, &page.events);
        }
        let (owner, channel) = (key.0.to_string(), key.1.to_string());
        let since = after.and_then(|after| i64::try_from(after).ok());
        let key = key.clone();
        self.read(
            move |store| store.events(&owner, &channel, since, REFILL),
            move |broker, found: Result<Vec<(i64, Row)>, JournalError>| match found {
                Ok(rows) => {
                    let events: Vec<Event> = rows.iter().map(|(seq, row)| durable_event(&key.1, *seq, row)).collect();
                    broker.refilled(&key, conn, sub, with_owner, &events);
                }
                Err(error) => crate::log::line(format_args!("events of {}: {error}", key.1)),
            },
        );
    }

    fn refilled(&mut self, key: &ChannelKey, conn: ConnId, sub: SubId, with_owner: bool, events: &[Event]) {
        let Some(last) = events.last() else { return self.bus.advance(key, sub, Stage::Live) };
        self.bus.advance(key, sub, Stage::CatchUp { after: last.seq });
        let owner = with_owner.then_some(&*key.0);
        let deliveries = events.iter().map(|event| Delivery {
            conn,
            sub,
            seq: event.seq,
            frame: event_frame(&key.1, owner, event).into(),
        });
        self.deliver(deliveries.collect(), last.ts);
    }

    /// Something happened in the life of a session.
    pub(crate) fn session_event(&mut self, sid: Sid, action: &str, reason: Option<&str>, name: Option<&str>) {
        self.session_event_with(sid, action, reason, name.map(|name| ("name", tagged_str(name))));
    }

    /// A commit changed what `what` lists.
    pub(crate) fn session_changed(&mut self, sid: Sid, what: &[&str]) {
        let what = tagged_list(&what.iter().map(|name| tagged_str(name)).collect::<Vec<_>>());
        self.session_event_with(sid, "changed", None, Some(("what", what)));
    }

    fn session_event_with(&mut self, sid: Sid, action: &str, reason: Option<&str>, more: Option<(&str, String)>) {
        let Some(session) = self.sessions.at(sid) else { return };
        let owner = session.owner.clone();
        let mut members = vec![
            ("action", tagged_str(action)),
            ("session", tagged_str(&session.name)),
            ("reason", tagged_opt(reason)),
        ];
        members.extend(more);
        self.publish(&owner, "session", &tagged_record(&members));
    }

    /// Something happened in the life of the kernel.
    pub(crate) fn kernel_event(&mut self, action: &str, role: Option<&str>, detail: Option<&str>) {
        let mut members = vec![("action", tagged_str(action))];
        members.extend(role.map(|role| ("role", tagged_str(role))));
        members.push(("detail", tagged_opt(detail)));
        let owner = self.local_user();
        self.publish(&owner, "kernel", &tagged_record(&members));
    }

    /// The render of a successful execution.
    pub(crate) fn render_event(&mut self, sid: Sid, out: u64, render: &str) {
        let Some(session) = self.sessions.at(sid) else { return };
        let owner = session.owner.clone();
        let payload = tagged_record(&[
            ("session", tagged_str(&session.name)),
            ("ref", tagged_str(&format!("out:{out}"))),
            ("render", tagged_str(render)),
        ]);
        self.publish(&owner, "render", &payload);
    }

    /// A row about the life of a session.
    pub(crate) fn note_session(&mut self, sid: Sid, action: &str, reason: Option<&str>, by: Option<&str>) {
        let Some(session) = self.sessions.at(sid) else { return };
        let principal = by.map_or_else(|| session.owner.clone(), Rc::from);
        let detail = json!({"action": action, "reason": reason, "by": by});
        let row = self.plain_row(Kind::Session, Some(sid), &principal, detail);
        self.note(row);
    }

    /// A row about the life of the kernel.
    pub(crate) fn note_kernel(&mut self, action: &str, note: Option<&str>) {
        let detail = json!({"action": action, "build": shoal_wire::BUILD, "note": note});
        let row = self.plain_row(Kind::Kernel, None, &self.local_user(), detail);
        self.note(row);
    }

    /// The `admin` row of an act of administration; `then` answers it.
    pub(crate) fn record_admin(
        &mut self,
        principal: &str,
        method: &str,
        arguments: Value,
        then: impl FnOnce(&mut Self, Result<i64, JournalError>) + 'static,
    ) {
        let detail = json!({"method": method, "arguments": arguments});
        let row = self.plain_row(Kind::Admin, None, principal, detail);
        self.write_plain(row, then);
    }
}

/// The channel of a task or terminal.
pub(crate) fn is_of_object(channel: &str) -> bool {
    channel.starts_with("task.") || channel.starts_with("pty.")
}

/// A number that could not be reserved: said, because a successor could use it again.
fn log_unwritten(_: &mut Broker, written: Result<(), JournalError>) {
    if let Err(error) = written {
        crate::log::line(format_args!("counter not written: {error}"));
    }
}
