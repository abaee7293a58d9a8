//! A broker that is killed at named points, again and again, while clients work: nothing that was answered is lost, nothing
//! runs twice, no number comes twice, and every blob a row names is whole.
//!
//! `SHOAL_CRASH_ROUNDS` says how many kills (20), `SHOAL_CRASH_SEED` which.
#![allow(clippy::disallowed_methods, reason = "the test owns its directory")]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::client::Client;
use crate::crash::{POINTS, Point};
use crate::kernel::Kernel;

/// Keyed executions sent at once.
const BATCH: usize = 8;

/// Numbers that can be had again: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).expect("small")
    }
}

/// What clients were told, by key: the text its value holds, or nothing when its run was interrupted.
type Told = BTreeMap<String, Option<String>>;

/// A source whose value is `text`: small ones lie in the database, large ones are files.
fn text(random: &mut Random, key: &str) -> String {
    let len = if random.below(3) == 0 { 40_000 } else { 10 };
    format!("{key} {}", "x".repeat(len))
}

/// Sends a batch with keys and sends again what was not answered, until every key is settled.
fn work(kernel: &Kernel, session: &str, batch: &BTreeMap<String, String>, told: &mut Told) {
    let mut left: BTreeSet<&String> = batch.keys().collect();
    while !left.is_empty() {
        let Some(mut client) = attach(kernel, session) else { continue };
        let sent: BTreeMap<u64, &String> = left
            .iter()
            .filter_map(|key| {
                let params = json!({"src": format!("value {}", batch[*key]), "position": "value", "key": key});
                Some((client.try_send("exec", params)?, *key))
            })
            .collect();
        for _ in 0..sent.len() {
            let Some(frame) = client.frame() else { break };
            let Some(key) = frame["id"].as_u64().and_then(|id| sent.get(&id).copied()) else { continue };
            match (&frame["result"], &frame["error"]) {
                (result, Value::Null) => {
                    assert!(result["ref"].is_string(), "{frame}");
                    told.insert(key.clone(), Some(batch[key].clone()));
                }
                // Recorded, and killed before it ran: that is the answer for good.
                (_, error) if error["code"] == -32050 && error["data"]["entry_id"].is_i64() => {
                    told.insert(key.clone(), None);
                }
                // The session is being taken over: asked again.
                (_, error) if error["code"] == -32050 => continue,
                (_, error) => panic!("{key}: {error}"),
            }
            left.remove(key);
        }
    }
}

/// An attached connection; nothing while the broker is being replaced.
fn attach(kernel: &Kernel, session: &str) -> Option<Client> {
    let mut client = kernel.connect();
    let id = client.try_send("session.attach", json!({"session": session}))?;
    let frame = client.frame()?;
    (frame["id"] == id && frame.get("result").is_some()).then_some(client)
}

/// The same, once there is a broker again; each try waits for the one that is being started.
fn attached(kernel: &Kernel, session: &str) -> Client {
    (0..100).find_map(|_| attach(kernel, session)).expect("a broker that serves")
}

/// Everything that was told is there, once and whole.
fn check(kernel: &Kernel, session: &str, told: &Told) {
    let mut client = attached(kernel, session);
    assert_eq!(client.ok("journal.verify", json!({}))["ok"], true);
    let mut rows: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut before = Value::Null;
    loop {
        let page = client.ok("journal.query", json!({"kinds": ["exec"], "limit": 1000, "before": before}));
        let page = page.as_array().expect("rows").clone();
        let Some(last) = page.last() else { break };
        before = last["id"].clone();
        for row in page {
            rows.entry(row["key"].as_str().expect("a key").to_owned()).or_default().push(row);
        }
    }
    for (key, text) in told {
        let of_key = rows.get(key).unwrap_or_else(|| panic!("no row of {key}, which was answered"));
        assert_eq!(of_key.len(), 1, "{key} ran twice: {of_key:?}");
        let row = &of_key[0];
        let Some(text) = text else {
            assert_eq!((&row["ok"], &row["ended"]), (&json!(false), &json!("interrupted")), "{row}");
            continue;
        };
        assert_eq!((&row["ok"], &row["ended"]), (&json!(true), &json!(null)), "{row}");
        let output = row["outputs"].as_array().expect("outputs").iter().find(|output| output["kind"] == "value");
        let output = output.expect("a value");
        let blob = client.ok("blob.get", json!({"hash": output["hash"], "offset": 0, "length": 65536}));
        let stored = crate::client::decoded(&blob["value"]["v"]);
        let stored: Value = serde_json::from_slice(&stored).expect("a whole value");
        assert_eq!(stored["v"].as_str(), Some(text.as_str()), "{key}");
    }
}

/// Events of a durable channel count from 0 without a gap, one per successful run.
fn check_events(kernel: &Kernel, session: &str, told: &Told) {
    let mut client = attached(kernel, session);
    // `since` is exclusive: the first event is not among them.
    let mut since = json!(0);
    let (mut seqs, mut refs) = (Vec::new(), BTreeSet::new());
    loop {
        let page = client.ok("events.read", json!({"channel": "session.transcript", "since": since}));
        let events = page["events"].as_array().expect("events");
        for event in events {
            seqs.push(event["seq"].as_u64().expect("a number"));
            let payload = &event["payload"]["v"];
            let of = format!("{} {}", payload["session"]["v"], payload["ref"]["v"]);
            assert!(refs.insert(of), "{event} is announced twice");
        }
        since = page["page"]["next_since"].clone();
        if page["page"]["truncated"] == false {
            break;
        }
    }
    let good = told.values().flatten().count() as u64;
    assert_eq!(seqs, (1..good).collect::<Vec<_>>(), "one event per run that was answered");
}

#[test]
fn a_killed_broker_loses_nothing_it_answered() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let rounds = number("SHOAL_CRASH_ROUNDS").unwrap_or(20);
    let seed = number("SHOAL_CRASH_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    eprintln!("SHOAL_CRASH_SEED={seed} SHOAL_CRASH_ROUNDS={rounds}");
    let mut random = Random(seed);
    let kernel = Kernel::with(&[("blob_reads", 1_000_000)]);
    let sessions = ["a", "b"];
    let (mut told, mut published) = (Told::new(), Vec::new());
    let mut killed: BTreeMap<Point, u64> = BTreeMap::new();
    let mut batches = 0;
    while killed.values().sum::<u64>() < rounds {
        let point = POINTS[random.below(POINTS.len())];
        let after = if point == Point::SessionAsked { 0 } else { random.below(BATCH) };
        kernel.crash.arm(point, after);
        batches += 1;
        let batch: BTreeMap<String, String> = (0..BATCH)
            .map(|n| {
                let key = format!("k{batches}-{n}");
                let text = text(&mut random, &key);
                (key, text)
            })
            .collect();
        // A point that lies in the making of a session needs one to make.
        let fresh = format!("s{batches}");
        let session =
            if point == Point::SessionAsked { fresh.as_str() } else { sessions[random.below(sessions.len())] };
        work(&kernel, session, &batch, &mut told);
        if kernel.crash.disarm() {
            *killed.entry(point).or_default() += 1;
        }
        if let Some(mut client) = attach(&kernel, sessions[0])
            && let Ok(event) = client.call("events.publish", json!({"channel": "user.count", "payload": batches}))
        {
            published.push(event["seq"].as_u64().expect("a number"));
        }
        if batches % 25 == 0 {
            check(&kernel, sessions[0], &told);
        }
    }
    check(&kernel, sessions[0], &told);
    check_events(&kernel, sessions[0], &told);
    assert!(published.windows(2).all(|pair| pair[0] < pair[1]), "a number came twice: {published:?}");
    eprintln!("{batches} batches, {} answers, killed at {killed:?}", told.len());
}
