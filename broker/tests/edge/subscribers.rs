//! Subscribers that do not read: nobody waits for them, and they are told what they missed.

use serde_json::{Value, json};

use crate::kernel::Kernel;

/// Events published past a subscriber that does not read: more than its socket and its queue hold.
const EVENTS: u64 = 3000;

#[test]
fn a_subscriber_that_does_not_read_delays_nobody_and_learns_what_it_missed() {
    let kernel = Kernel::start();
    let mut stalled = kernel.attach("a");
    let mut reading = kernel.attach("a");
    let mut producer = kernel.attach("a");
    for client in [&mut stalled, &mut reading] {
        client.ok("events.subscribe", json!({"channel": "user.x"}));
    }
    let padding = "x".repeat(1000);
    for n in 0..EVENTS {
        let payload = json!({"n": n, "padding": padding});
        let published = producer.ok("events.publish", json!({"channel": "user.x", "payload": payload}));
        assert_eq!(published["seq"], n);
        // Every event reaches the one that reads, in order, before the next is published.
        let push = reading.push();
        assert_eq!((&push["seq"], &push["payload"]["n"]), (&json!(n), &json!(n)));
    }
    let (mut seen, mut dropped, mut last) = (0, 0, None);
    while seen + dropped < EVENTS {
        let push = stalled.push();
        let seq = push["seq"].as_u64().expect("a number");
        assert!(last.is_none_or(|last| last < seq), "in order");
        last = Some(seq);
        match push["payload"]["dropped"].as_u64() {
            Some(missed) => {
                assert_eq!(push["payload"]["latest_seq"], push["seq"]);
                dropped += missed;
            }
            None => seen += 1,
        }
    }
    assert_eq!(seen + dropped, EVENTS);
    assert!(dropped > 0, "its queue is bounded");
    // What it missed is still there to be read.
    let page = stalled.ok("events.read", json!({"channel": "user.x", "since": EVENTS - 11}));
    let read: Vec<&Value> = page["events"].as_array().expect("events").iter().map(|event| &event["seq"]).collect();
    assert_eq!(read.len(), 10);
}

#[test]
fn nothing_is_pushed_after_the_answer_to_an_unsubscribe() {
    let kernel = Kernel::start();
    let mut client = kernel.attach("a");
    let mut producer = kernel.attach("a");
    client.ok("events.subscribe", json!({"channel": "user.x"}));
    for n in 0..200 {
        producer.ok("events.publish", json!({"channel": "user.x", "payload": n}));
    }
    let id = client.send("events.unsubscribe", json!({"channel": "user.x"}));
    client.answer(id).expect("unsubscribed");
    client.forget_pushes();
    for n in 0..200 {
        producer.ok("events.publish", json!({"channel": "user.x", "payload": n}));
    }
    // The answer to a later request is the next frame there is.
    let id = client.send("task.list", json!({}));
    let frame = client.frame().expect("a frame");
    assert_eq!(frame["id"], json!(id), "{frame}");
}
