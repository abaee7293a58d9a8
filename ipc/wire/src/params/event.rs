//! Event methods.

use serde_json::value::RawValue;

use super::params;
use super::session::Principal;
use crate::limits;

params! {
    /// `events.read`.
    #[derive(Eq)]
    EventsRead {
        /// Topic.
        req channel: String,
        /// Events with a higher number.
        opt since: u64,
        /// Events at most; see [`EventsRead::events`].
        opt limit: u64,
        /// Owner of the topic when it is not the caller's session's.
        opt owner: Principal,
    }
}

impl EventsRead {
    /// The number of events asked for, at most 1,024.
    pub fn events(&self) -> u64 {
        self.limit.unwrap_or(limits::EVENTS_PAGE).min(limits::EVENTS_PAGE)
    }
}

/// `events.publish`. The payload may be `null`, so it is kept as text and must be there.
#[derive(Clone, Debug)]
pub struct EventsPublish {
    /// Topic, `user.NAME`.
    pub channel: String,
    /// Any JSON.
    pub payload: Box<RawValue>,
}

impl super::Params for EventsPublish {
    const MEMBERS: &'static [&'static str] = &["channel", "payload"];

    fn take(members: &mut super::Members<'_>) -> Result<Self, crate::error::RpcError> {
        Ok(EventsPublish { channel: members.required("channel")?, payload: members.verbatim("payload")? })
    }
}

params! {
    /// `events.subscribe`.
    #[derive(Eq)]
    EventsSubscribe {
        /// Topic.
        req channel: String,
        /// Retained events with a higher number come first.
        opt since: u64,
        /// Owner of the topic when it is not the caller's session's.
        opt owner: Principal,
    }
}

params! {
    /// `events.unsubscribe`.
    #[derive(Eq)]
    EventsUnsubscribe {
        /// Topic.
        req channel: String,
        /// Owner named when subscribing.
        opt owner: Principal,
    }
}

/// Whether clients may publish on `channel`: `user.` and 1 to 128 characters of `[A-Za-z0-9._-]`.
pub fn is_writable(channel: &str) -> bool {
    channel.strip_prefix("user.").is_some_and(|name| {
        (1..=128).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_topics_alone_are_writable() {
        assert!(is_writable("user.x") && is_writable("user.a.b-c_D9"));
        for bad in ["journal", "user.", "user.a b", "users.x", &format!("user.{}", "x".repeat(129))] {
            assert!(!is_writable(bad), "{bad}");
        }
    }

    #[test]
    fn a_null_payload_is_a_payload() {
        let raw = RawValue::from_string(r#"{"channel":"user.x","payload":null}"#.to_owned()).unwrap();
        let publish: EventsPublish = crate::params::decode(Some(&raw)).unwrap();
        assert_eq!(publish.payload.get(), "null");
    }
}
