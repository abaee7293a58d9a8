//! Event methods.

use std::rc::Rc;

use shoal_proto::broker_worker::Method as WorkerMethod;
use shoal_wire::error::Reason;
use shoal_wire::params::event::{EventsPublish, EventsRead, EventsSubscribe, EventsUnsubscribe, is_writable};
use shoal_wire::{RpcError, limits, params};

use super::Params;
use crate::broker::{Broker, or_refuse};
use crate::bus::{ChannelKey, Event, MAX_PAGE_BYTES, Page, is_durable};
use crate::clients::{Ask, Attachment, ConnId};
use crate::json::quoted;
use crate::quotas::Quota;
use crate::record::durable_event;

impl Broker {
    /// The channel a caller names, if it may.
    fn channel(&self, caller: &Attachment, channel: &str, owner: Option<&str>) -> Result<ChannelKey, RpcError> {
        let foreign = owner.is_some_and(|owner| *owner != *caller.owner);
        if (foreign || channel == "kernel") && !caller.human {
            return Err(RpcError::not_permitted("human"));
        }
        let owner: Rc<str> = match owner {
            Some(owner) => owner.into(),
            None if channel == "kernel" => self.local_user(),
            None => caller.owner.clone(),
        };
        Ok((owner, channel.into()))
    }

    /// `events.read`.
    pub(super) fn answer_events_read(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<EventsRead>(text));
        let owner = wanted.owner.as_ref().map(|owner| owner.0.as_str());
        let key = or_refuse!(self, ask, self.channel(caller, &wanted.channel, owner));
        let limit = u32::try_from(wanted.events()).unwrap_or(1024);
        let since = wanted.since;
        if !is_durable(&wanted.channel) {
            let page = self.bus.page(&key, self.now.ns, since, limit as usize);
            let body = page_json(&wanted.channel, &page, since);
            return self.reply(ask, Ok(body));
        }
        let (owner, channel) = (key.0.to_string(), wanted.channel);
        let asked = channel.clone();
        self.read(
            move |store| {
                let newest = store.newest_event(&owner, &channel)?;
                let tail = newest.map_or(-1, |newest| newest - i64::from(limit));
                let from = since.map_or(tail, |since| i64::try_from(since).unwrap_or(i64::MAX));
                Ok((newest, store.events(&owner, &channel, Some(from), limit)?))
            },
            move |broker, found| match found {
                Ok((newest, rows)) => {
                    let events = rows.iter().map(|(seq, row)| durable_event(&asked, *seq, row)).collect();
                    let page = durable_page(events, newest, since);
                    broker.reply(ask, Ok(page_json(&asked, &page, since)));
                }
                Err(error) => broker.reply(ask, Err(RpcError::internal(error.to_string()))),
            },
        );
    }

    /// `events.publish`.
    pub(super) fn answer_events_publish(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<EventsPublish>(text));
        let payload = wanted.payload.get();
        let published = self.publish_user(&caller.owner, &wanted.channel, payload);
        if let Ok((seq, ts)) = &published {
            let event = format!(
                r#"{{"channel":{},"seq":{seq},"ts":{ts},"payload":{},"origin":"wire"}}"#,
                quoted(&wanted.channel),
                payload,
            );
            self.ask_worker(caller.sid, WorkerMethod::Event, event, |_, _| {});
        }
        let (seq, ts) = or_refuse!(self, ask, published);
        let body = format!(r#"{{"channel":{},"seq":{seq},"ts":{ts}}}"#, quoted(&wanted.channel));
        self.when_shown(&caller.owner, &wanted.channel, seq, move |broker| broker.send_answer(ask, &Ok(body)));
    }

    /// Publishes on a user channel of an owner.
    pub(crate) fn publish_user(
        &mut self,
        owner: &Rc<str>,
        channel: &str,
        payload: &str,
    ) -> Result<(u64, i64), RpcError> {
        if !is_writable(channel) {
            let message = "clients may publish on `user.NAME` with 1 to 128 of A-Za-z0-9._-";
            let error = RpcError::invalid("channel", Reason::NotWritable, message);
            return Err(error.and("channel", channel));
        }
        if payload.len() > limits::PUBLISH_BYTES {
            let message = format!("a payload has at most {} bytes", limits::PUBLISH_BYTES);
            return Err(RpcError::invalid("payload", Reason::TooLarge, message));
        }
        let key: ChannelKey = (owner.clone(), channel.into());
        if !self.bus.exists(&key) {
            self.quotas.admit(Quota::UserChannels, self.bus.user_channels_of(owner))?;
        }
        Ok(self.publish(owner, channel, payload))
    }

    /// `events.subscribe`.
    pub(super) fn answer_events_subscribe(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<EventsSubscribe>(text));
        let owner = wanted.owner.as_ref().map(|owner| owner.0.as_str());
        let key = or_refuse!(self, ask, self.channel(caller, &wanted.channel, owner));
        or_refuse!(self, ask, self.quotas.admit(Quota::Subscriptions, self.bus.subscriptions_of(&key.0)));
        let (conn, with_owner) = (ask.conn, wanted.owner.is_some());
        let subscribed = self.bus.subscribe(&key, self.now.ns, conn, with_owner, wanted.since);
        let body = format!(
            r#"{{"channel":{},"subscribed":true,"next_seq":{},"history_lost":{}}}"#,
            quoted(&wanted.channel),
            subscribed.next_seq,
            subscribed.history_lost,
        );
        if subscribed.fresh
            && let Some(client) = self.clients.at(conn)
        {
            let shown = with_owner.then(|| key.0.clone());
            client.out.with(|queue| queue.open_share(subscribed.sub, key.1.clone(), shown));
        }
        self.send_answer(ask, &Ok(body));
        if subscribed.fresh && wanted.since.is_some() {
            self.refill(&key, conn, subscribed.sub, with_owner, wanted.since);
        }
    }

    /// `events.unsubscribe`.
    pub(super) fn events_unsubscribe(
        &mut self,
        conn: ConnId,
        caller: &Attachment,
        text: Params<'_>,
    ) -> Result<String, RpcError> {
        let wanted = params::decode::<EventsUnsubscribe>(text)?;
        let owner = wanted.owner.as_ref().map(|owner| owner.0.as_str());
        let key = self.channel(caller, &wanted.channel, owner)?;
        let gone = self.bus.unsubscribe(&key, conn);
        if let Some(client) = self.clients.at(conn) {
            client.out.with(|queue| gone.into_iter().for_each(|sub| queue.close_share(sub)));
        }
        Ok(format!(r#"{{"channel":{},"subscribed":false}}"#, quoted(&wanted.channel)))
    }
}

fn durable_page(mut events: Vec<Event>, newest: Option<i64>, since: Option<u64>) -> Page {
    let mut bytes = 0;
    let fits = events.iter().take_while(|event| {
        bytes += event.payload.len();
        bytes <= MAX_PAGE_BYTES
    });
    let keep = fits.count().max(1);
    events.truncate(keep);
    let last = events.last().map(|event| event.seq).or(since);
    let newest = newest.and_then(|newest| u64::try_from(newest).ok());
    let truncated = match since {
        Some(_) => newest.is_some_and(|newest| last.is_none_or(|last| last < newest)),
        None => events.first().is_some_and(|first| first.seq > 0),
    };
    Page { truncated, oldest: newest.map(|_| 0), history_lost: false, events }
}

pub(super) fn page_json(channel: &str, page: &Page, since: Option<u64>) -> String {
    let channel = quoted(channel);
    let events: Vec<String> = page
        .events
        .iter()
        .map(|e| format!(r#"{{"channel":{channel},"seq":{},"ts":{},"payload":{}}}"#, e.seq, e.ts, e.payload))
        .collect();
    let opt = |n: Option<u64>| n.map_or("null".to_owned(), |n| n.to_string());
    let next = page.events.last().map(|event| event.seq).or(since);
    format!(
        concat!(
            r#"{{"channel":{},"events":[{}],"page":{{"returned":{},"next_since":{},"truncated":{},"#,
            r#""oldest_available":{},"history_lost":{}}}}}"#
        ),
        channel,
        events.join(","),
        events.len(),
        opt(next),
        page.truncated,
        opt(page.oldest),
        page.history_lost,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_channel_is_an_empty_page() {
        assert_eq!(
            page_json("zzz", &Page::default(), None),
            concat!(
                r#"{"channel":"zzz","events":[],"page":{"returned":0,"next_since":null,"truncated":false,"#,
                r#""oldest_available":null,"history_lost":false}}"#
            )
        );
    }
}
