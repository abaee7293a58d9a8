//! What identifies an item between two reads.

use serde_json::Value;

/// Where an identity may stand, best first.
const PLACES: [&[&str]; 5] = [&["metadata", "uid"], &["uid"], &["id"], &["metadata", "name"], &["name"]];

/// The identity an item carries, as text.
pub(crate) fn carried(item: &Value) -> Option<String> {
    let at =
        |place: &&[&str]| place.iter().try_fold(item, |value, name| value.get(name)).filter(|value| !value.is_null());
    PLACES.iter().find_map(at).map(text)
}

/// The identity of an item; the whole item where it carries none.
pub(crate) fn of(item: &Value) -> String {
    carried(item).unwrap_or_else(|| text(item))
}

/// A string as it is, anything else as compact JSON.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The object an event is about.
pub(crate) fn object(event: &Value) -> Option<&Value> {
    ["object", "item", "new", "old"].iter().find_map(|name| event.get(name).filter(|value| value.is_object()))
}
