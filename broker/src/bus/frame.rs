//! The bytes of a push: the only place where an event becomes a frame.

use super::ring::Event;
use crate::json;

/// An event frame; `owner` is named when the subscription named one.
pub(crate) fn event_frame(channel: &str, owner: Option<&str>, event: &Event) -> Vec<u8> {
    let mut out = Vec::with_capacity(event.payload.len() + channel.len() + 128);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","method":"event","params":{"channel":"#);
    json::push_str(&mut out, channel);
    if let Some(owner) = owner {
        out.extend_from_slice(br#","owner":"#);
        json::push_str(&mut out, owner);
    }
    out.extend_from_slice(format!(r#","seq":{},"ts":{},"payload":"#, event.seq, event.ts).as_bytes());
    out.extend_from_slice(event.payload.as_bytes());
    out.extend_from_slice(b"}}\n");
    out
}

/// The frame that announces what a full queue dropped.
pub(crate) fn dropped_frame(channel: &str, owner: Option<&str>, dropped: u64, latest: u64, ts: i64) -> Vec<u8> {
    let payload = format!(r#"{{"dropped":{dropped},"latest_seq":{latest}}}"#);
    event_frame(channel, owner, &Event { seq: latest, ts, payload: payload.into() })
}
