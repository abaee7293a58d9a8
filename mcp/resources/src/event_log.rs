//! Event logs: what makes the events of a channel readable to any watch client.

use serde_json::{Value, json};
use shoal_wire::value;

use crate::bound;

/// Gives each event of an `events.read` or `watch.get` result its `type` and plain `object`.
pub(crate) fn describe(body: &mut Value) {
    let channel = body["channel"].as_str().map(str::to_owned);
    for event in body["events"].as_array_mut().into_iter().flatten() {
        let channel = event["channel"].as_str().map(str::to_owned).or_else(|| channel.clone()).unwrap_or_default();
        let payload = &event["payload"];
        let object = value::plain(payload);
        let described = match lost(&object) {
            true => json!({ "channel": channel, "seq": event["seq"], "ts": event["ts"], "type": "ERROR",
                "message": "history lost", "object": object, "payload": payload }),
            false => {
                json!({ "channel": channel, "seq": event["seq"], "ts": event["ts"], "type": kind(&channel, &object),
                "object": object, "payload": payload })
            }
        };
        *event = described;
    }
}

/// The events of a watch: notices, without what the record beside them says already.
pub(crate) fn describe_notices(body: &mut Value, name: &str) {
    body["channel"] = json!(format!("watch.{name}"));
    describe(body);
    for event in body["events"].as_array_mut().into_iter().flatten() {
        if let Some(members) = event.as_object_mut() {
            members.shift_remove("payload");
        }
        if let Some(object) = event["object"].as_object_mut() {
            object.shift_remove("uri");
            object.shift_remove("session");
        }
    }
}

fn lost(object: &Value) -> bool {
    object["error"] == "history_lost"
}

fn kind(channel: &str, object: &Value) -> String {
    let upper = |name: &str| object[name].as_str().map(str::to_uppercase);
    let family = channel.split('.').next().unwrap_or_default();
    let found = match (channel, family) {
        ("journal", _) => upper("kind"),
        ("session.transcript", _) => Some("TRANSCRIPT".to_owned()),
        ("render", _) => Some("RENDER".to_owned()),
        ("approval" | "session" | "kernel", _) => upper("action"),
        (_, "task") => object.as_str().map(str::to_uppercase).or_else(|| upper("state")),
        (_, "pty") => Some(if object["alive"] == false { "EXITED" } else { "CHANGED" }.to_owned()),
        (_, "watch") => Some("NOTICE".to_owned()),
        (_, "user") => Some(object["type"].as_str().unwrap_or("USER").to_owned()),
        _ => None,
    };
    found.unwrap_or_else(|| "EVENT".to_owned())
}

/// Drops events until the body serialises within `bytes`: the newest of a forward page, the oldest of a tail. One that
/// alone is too big keeps its number and type.
pub(crate) fn fit(body: &mut Value, forward: bool, bytes: usize) {
    if bound::size(body) <= bytes {
        return;
    }
    let frame = bound::size(body).saturating_sub(bound::size(&body["events"]));
    let budget = bytes.saturating_sub(frame + 64);
    let Some(events) = body["events"].as_array_mut() else { return };
    for event in events.iter_mut().filter(|event| bound::size(event) > budget) {
        *event = json!({ "channel": event["channel"], "seq": event["seq"], "ts": event["ts"], "type": event["type"],
            "elided": true });
    }
    if !forward {
        events.reverse();
    }
    bound::fit_list(events, budget);
    if !forward {
        events.reverse();
    }
    let (returned, last) = (events.len(), events.last().map(|event| event["seq"].clone()));
    let page = &mut body["page"];
    page["returned"] = json!(returned);
    page["truncated"] = json!(true);
    if let Some(seq) = last {
        page["next_since"] = seq;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(channel: &str, payload: Value) -> Value {
        let mut body = json!({ "channel": channel, "events": [{"channel": channel, "seq": 1, "ts": 2, "payload": payload}], "page": {} });
        describe(&mut body);
        body["events"][0].take()
    }

    #[test]
    fn types_of_every_channel() {
        let record = |name: &str, text: &str| value::record([(name, value::str(text))]);
        let cases = [
            ("journal", record("kind", "exec"), "EXEC"),
            ("session.transcript", record("ref", "out:1"), "TRANSCRIPT"),
            ("render", record("ref", "out:1"), "RENDER"),
            ("approval", record("action", "requested"), "REQUESTED"),
            ("session", record("action", "worker_lost"), "WORKER_LOST"),
            ("task.4", value::str("started"), "STARTED"),
            ("task.4", record("state", "completed"), "COMPLETED"),
            ("pty.3", value::record([("alive", value::bool(false))]), "EXITED"),
            ("pty.3", value::record([("alive", value::bool(true))]), "CHANGED"),
            ("watch.cm", record("text", "x"), "NOTICE"),
            ("user.z", json!({"type": "Ping"}), "Ping"),
            ("user.z", json!(7), "USER"),
            ("user.z", record("error", "history_lost"), "ERROR"),
        ];
        for (channel, payload, kind) in cases {
            let event = described(channel, payload.clone());
            assert_eq!(event["type"], kind, "{channel}");
            assert_eq!(event["payload"], payload);
        }
        assert_eq!(described("user.z", record("error", "history_lost"))["message"], "history lost");
        assert_eq!(described("journal", record("kind", "exec"))["object"], json!({"kind": "exec"}));
    }

    fn log(count: u64, text: usize) -> Value {
        let events: Vec<Value> = (0..count)
            .map(|seq| json!({"channel":"c","seq":seq,"ts":0,"type":"T","object":"x".repeat(text)}))
            .collect();
        json!({"channel":"c","events":events,"page":{"returned":count,"next_since":count - 1,"truncated":false}})
    }

    #[test]
    fn pages_lose_events_at_the_end_that_can_be_read_later() {
        let mut forward = log(100, 1000);
        fit(&mut forward, true, 10_000);
        assert_eq!(forward["events"][0]["seq"], 0);
        let returned = forward["events"].as_array().unwrap().len() as u64;
        assert_eq!(forward["page"], json!({"returned":returned,"next_since":returned - 1,"truncated":true}));
        assert!(bound::size(&forward) <= 10_000 && returned > 3);
        let mut tail = log(100, 1000);
        fit(&mut tail, false, 10_000);
        assert_eq!(tail["events"].as_array().unwrap().last().unwrap()["seq"], 99);
        let mut big = log(1, 100_000);
        fit(&mut big, false, 10_000);
        assert_eq!(big["events"], json!([{"channel":"c","seq":0,"ts":0,"type":"T","elided":true}]));
    }
}
