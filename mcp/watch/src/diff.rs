//! Differences between two states of a resource.

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::key;

/// Deepest dotted path of `changed`.
const DEPTH: usize = 3;
/// Members that change with every write and say nothing.
const NOISE: [&str; 3] = ["metadata.resourceVersion", "metadata.generation", "metadata.managedFields"];

/// The events that lead from `old` to `new`: deleted, modified, added.
pub(crate) fn events(old: &Value, new: &Value) -> Vec<Value> {
    match (old, new) {
        (Value::Array(old), Value::Array(new)) => by_key(&keyed(old), &keyed(new), true),
        (Value::Object(old), Value::Object(new)) => by_key(&members(old), &members(new), false),
        _ if old == new => Vec::new(),
        _ => vec![json!({ "type": "CHANGED", "old": old, "new": new, "changed": null })],
    }
}

/// Items by identity; the n-th repetition of an identity is another one.
fn keyed(items: &[Value]) -> IndexMap<(String, usize), &Value> {
    let mut seen: IndexMap<(String, usize), &Value> = IndexMap::new();
    let mut count: IndexMap<String, usize> = IndexMap::new();
    for item in items {
        let key = key::of(item);
        let nth = count.entry(key.clone()).or_default();
        seen.insert((key, *nth), item);
        *nth += 1;
    }
    seen
}

fn members(object: &Map<String, Value>) -> IndexMap<(String, usize), &Value> {
    object.iter().map(|(name, value)| ((name.clone(), 0), value)).collect()
}

fn by_key(old: &IndexMap<(String, usize), &Value>, new: &IndexMap<(String, usize), &Value>, items: bool) -> Vec<Value> {
    let event = |kind: &str, key: &str, old: Option<&Value>, new: Option<&Value>| {
        let changed = old.zip(new).map_or(Value::Null, |(old, new)| changed(old, new));
        let mut event = json!({ "type": kind, "key": key, "old": old, "changed": changed });
        if let Some(new) = new {
            event["new"] = new.clone();
        }
        if items {
            event["item"] = json!(new.or(old));
        }
        event
    };
    let deleted = old.iter().filter(|(key, _)| !new.contains_key(*key));
    let mut events: Vec<Value> = deleted.map(|((key, _), value)| event("DELETED", key, Some(value), None)).collect();
    for (id, value) in new {
        if let Some(before) = old.get(id).filter(|before| *before != value) {
            events.push(event("MODIFIED", &id.0, Some(before), Some(value)));
        }
    }
    let added = new.iter().filter(|(key, _)| !old.contains_key(*key));
    events.extend(added.map(|((key, _), value)| event("ADDED", key, None, Some(value))));
    events
}

/// The dotted paths in which two objects differ, sorted; `null` for values that have none.
pub(crate) fn changed(old: &Value, new: &Value) -> Value {
    if !(old.is_object() && new.is_object()) {
        return Value::Null;
    }
    let mut paths = Vec::new();
    collect(old, new, "", 1, &mut paths);
    paths.sort();
    json!(paths)
}

fn collect(old: &Value, new: &Value, prefix: &str, depth: usize, paths: &mut Vec<String>) {
    let none = Map::new();
    let (old, new) = (old.as_object().unwrap_or(&none), new.as_object().unwrap_or(&none));
    let names = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name)));
    for name in names {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match (old.get(name), new.get(name)) {
            (before, after) if before == after || NOISE.contains(&path.as_str()) => {}
            (Some(before), Some(after)) if before.is_object() && after.is_object() && depth < DEPTH => {
                collect(before, after, &path, depth + 1, paths);
            }
            _ => paths.push(path),
        }
    }
}

/// Whether an event says nothing: modified, and in nothing that counts.
pub(crate) fn is_noise(event: &Value) -> bool {
    event["type"] == "MODIFIED" && event["changed"].as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn short(events: &[Value]) -> Vec<String> {
        events.iter().map(|event| format!("{} {}", event["type"].as_str().unwrap(), key::text(&event["key"]))).collect()
    }

    #[test]
    fn objects_by_member() {
        let events = events(&json!({"a":1,"b":2}), &json!({"a":3,"c":4}));
        assert_eq!(short(&events), ["DELETED b", "MODIFIED a", "ADDED c"]);
        assert_eq!((&events[1]["old"], &events[1]["new"]), (&json!(1), &json!(3)));
        assert!(events[0].get("new").is_none());
    }

    #[test]
    fn lists_by_identity() {
        let before = json!([{"id":"x","status":{"phase":"A"}}, {"id":"y"}]);
        let after = json!([{"id":"y"}, {"id":"x","status":{"phase":"B"}}]);
        let found = events(&before, &after);
        assert_eq!(short(&found), ["MODIFIED x"]);
        assert_eq!(found[0]["changed"], json!(["status.phase"]));
        assert_eq!(found[0]["item"]["status"]["phase"], "B");
        assert_eq!(short(&events(&json!(["a", "a"]), &json!(["a"]))), ["DELETED a"]);
    }

    #[test]
    fn versions_are_noise() {
        let item = |version: &str| json!([{"metadata":{"uid":"u","resourceVersion":version}}]);
        let found = events(&item("1"), &item("2"));
        assert_eq!(found.len(), 1);
        assert!(is_noise(&found[0]));
    }

    #[test]
    fn paths_stop_at_three_levels() {
        let deep = |n: i64| json!({"a":{"b":{"c":{"d":n}}},"z":n});
        assert_eq!(changed(&deep(1), &deep(2)), json!(["a.b.c", "z"]));
        assert_eq!(changed(&json!(1), &json!(2)), Value::Null);
    }

    #[test]
    fn other_bodies_change_as_a_whole() {
        let found = events(&json!("a"), &json!("b"));
        assert_eq!(
            (&found[0]["type"], &found[0]["old"], &found[0]["new"]),
            (&json!("CHANGED"), &json!("a"), &json!("b"))
        );
        assert!(events(&json!("a"), &json!("a")).is_empty());
    }

    fn items() -> impl Strategy<Value = Vec<(u8, u8)>> {
        prop::collection::vec((0u8..6, 0u8..3), 0..8)
    }

    proptest! {
        #[test]
        fn applying_the_events_gives_the_new_state(old in items(), new in items()) {
            let state = |items: &[(u8, u8)]| -> Map<String, Value> {
                items.iter().map(|(key, value)| (key.to_string(), json!(value))).collect()
            };
            let (old, new) = (state(&old), state(&new));
            let mut built = old.clone();
            for event in events(&json!(old), &json!(new)) {
                let key = event["key"].as_str().unwrap();
                match event.get("new") {
                    Some(value) => built.insert(key.to_owned(), value.clone()),
                    None => built.shift_remove(key),
                };
            }
            let sorted = |map: Map<String, Value>| map.into_iter().collect::<std::collections::BTreeMap<_, _>>();
            prop_assert_eq!(sorted(built), sorted(new));
        }
    }
}
