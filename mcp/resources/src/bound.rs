//! Keeping JSON small: bodies that are too large lose their longest parts.

use serde_json::{Map, Value};

/// Longest string and list of the attempts to shrink what has no budget of its own.
const SHRINK: [(usize, usize); 5] = [(8192, 400), (2048, 100), (512, 30), (128, 10), (32, 3)];

/// Serialised length of a JSON value.
pub fn size(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting cannot fail, and a `Value` always serialises.
    drop(serde_json::to_writer(&mut count, value));
    count.0
}

/// Shortens strings and lists until the whole fits `bytes`; tells whether anything was shortened.
pub fn shrink(body: &mut Map<String, Value>, bytes: usize) -> bool {
    let mut whole = Value::Object(std::mem::take(body));
    let mut shortened = false;
    for (text, items) in SHRINK {
        if size(&whole) <= bytes {
            break;
        }
        shorten(&mut whole, text, items);
        shortened = true;
    }
    if let Value::Object(members) = whole {
        *body = members;
    }
    shortened
}

fn shorten(value: &mut Value, text: usize, items: usize) {
    match value {
        Value::String(string) if string.len() > text => {
            *string = format!("{}…", shoal_wire::text::cut(string, text));
        }
        Value::Array(list) => {
            list.truncate(items);
            list.iter_mut().for_each(|item| shorten(item, text, items));
        }
        Value::Object(members) => {
            let surplus: Vec<String> = members.keys().skip(items.max(16)).cloned().collect();
            for name in surplus {
                members.shift_remove(&name);
            }
            members.values_mut().for_each(|member| shorten(member, text, items));
        }
        _ => {}
    }
}

/// Drops items from the end of `list` until the rest serialises within `bytes`; returns how many were there.
pub fn fit_list(list: &mut Vec<Value>, bytes: usize) -> usize {
    let total = list.len();
    let mut used = 2;
    let fitting = list.iter().take_while(|item| {
        used += size(item) + 1;
        used <= bytes
    });
    let kept = fitting.count();
    list.truncate(kept);
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn lists_lose_their_end() {
        let mut list: Vec<Value> = (0..100).map(|n| json!({ "id": n, "src": "x".repeat(1000) })).collect();
        let total = fit_list(&mut list, 10_000);
        assert_eq!(total, 100);
        assert!(!list.is_empty() && size(&Value::Array(list.clone())) <= 10_000, "{}", list.len());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn anything_can_be_shrunk(strings in prop::collection::vec(".{0,200}", 0..30), copies in 1usize..40) {
            let mut body = Map::new();
            body.insert("a".into(), Value::Array(vec![json!(strings); copies]));
            body.insert("status".into(), json!("ok"));
            shrink(&mut body, 12_000);
            prop_assert!(size(&Value::Object(body.clone())) <= 12_000);
            prop_assert_eq!(&body["status"], "ok");
        }

        #[test]
        fn size_is_the_length_of_the_text(text in ".{0,40}", n in any::<i64>()) {
            let value = json!({ "t": text, "n": [n, null] });
            prop_assert_eq!(size(&value), value.to_string().len());
        }
    }
}
