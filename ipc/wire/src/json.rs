//! Limits on JSON that a peer sends, checked by one scan before anything is built from it.
//!
//! The scan looks at structure only. Text that is no JSON may pass it; the parser that follows refuses that text, and
//! can be sure of its depth and size by then.

use memchr::memchr2;

/// What a document may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonLimits {
    /// Nested containers; at most 128.
    pub depth: usize,
    /// Values, containers included.
    pub nodes: usize,
    /// Items of one array or members of one object.
    pub items: usize,
    /// One member name as it is written.
    pub key_bytes: usize,
    /// One number as it is written.
    pub number_bytes: usize,
}

/// The limit that a document breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonFault {
    /// Containers nested too deep.
    Depth,
    /// Too many values.
    Nodes,
    /// Too many items in one container.
    Items,
    /// A member name is too long.
    Key,
    /// A number is too long.
    Number,
}

impl std::fmt::Display for JsonFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            JsonFault::Depth => "nested too deep",
            JsonFault::Nodes => "too many values",
            JsonFault::Items => "too many items in one container",
            JsonFault::Key => "member name too long",
            JsonFault::Number => "number too long",
        })
    }
}

/// Deepest nesting a scan can be asked for.
const MAX_DEPTH: usize = 128;

#[derive(Clone, Copy, Default)]
struct Level {
    object: bool,
    key_next: bool,
    items: usize,
}

struct Scan<'a> {
    limits: &'a JsonLimits,
    levels: [Level; MAX_DEPTH],
    depth: usize,
    nodes: usize,
}

/// Checks `text` against `limits`.
pub fn check(text: &[u8], limits: &JsonLimits) -> Result<(), JsonFault> {
    let mut scan = Scan { limits, levels: [Level::default(); MAX_DEPTH], depth: 0, nodes: 0 };
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = match byte {
            b'{' | b'[' => {
                scan.open(byte == b'{')?;
                after
            }
            b'}' | b']' => {
                scan.depth = scan.depth.saturating_sub(1);
                after
            }
            b',' => {
                if let Some(level) = scan.top() {
                    level.key_next = level.object;
                }
                after
            }
            b'"' => scan.string(after)?,
            b' ' | b'\t' | b'\r' | b'\n' | b':' => after,
            _ => scan.scalar(rest)?,
        };
    }
    Ok(())
}

impl Scan<'_> {
    fn top(&mut self) -> Option<&mut Level> {
        self.levels.get_mut(self.depth.checked_sub(1)?)
    }

    fn item(&mut self) -> Result<(), JsonFault> {
        let most = self.limits.items;
        if let Some(level) = self.top() {
            level.items = level.items.saturating_add(1);
            if level.items > most {
                return Err(JsonFault::Items);
            }
        }
        Ok(())
    }

    /// A value begins: one more node, and one more item of the array around it (an object counts its keys).
    fn node(&mut self) -> Result<(), JsonFault> {
        self.nodes = self.nodes.saturating_add(1);
        if self.nodes > self.limits.nodes {
            return Err(JsonFault::Nodes);
        }
        if self.top().is_some_and(|level| !level.object) {
            self.item()?;
        }
        Ok(())
    }

    fn open(&mut self, object: bool) -> Result<(), JsonFault> {
        self.node()?;
        if self.depth >= self.limits.depth.min(MAX_DEPTH) {
            return Err(JsonFault::Depth);
        }
        if let Some(level) = self.levels.get_mut(self.depth) {
            *level = Level { object, key_next: object, items: 0 };
        }
        self.depth = self.depth.saturating_add(1);
        Ok(())
    }

    /// A string, from behind its opening quote; returns what follows it.
    fn string<'t>(&mut self, text: &'t [u8]) -> Result<&'t [u8], JsonFault> {
        let mut at = 0usize;
        let end = loop {
            let Some(tail) = text.get(at..) else { break text.len() };
            match memchr2(b'"', b'\\', tail) {
                Some(found) if tail.get(found) == Some(&b'"') => break at.saturating_add(found),
                Some(found) => at = at.saturating_add(found).saturating_add(2),
                None => break text.len(),
            }
        };
        let key = self.top().is_some_and(|level| std::mem::take(&mut level.key_next));
        if key {
            if end > self.limits.key_bytes {
                return Err(JsonFault::Key);
            }
            self.item()?;
        } else {
            self.node()?;
        }
        Ok(text.get(end.saturating_add(1)..).unwrap_or_default())
    }

    fn scalar<'t>(&mut self, text: &'t [u8]) -> Result<&'t [u8], JsonFault> {
        self.node()?;
        let end = text.iter().position(|byte| b" \t\r\n,:]}[{\"".contains(byte)).unwrap_or(text.len());
        if end > self.limits.number_bytes {
            return Err(JsonFault::Number);
        }
        Ok(text.get(end..).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    const SMALL: JsonLimits = JsonLimits { depth: 3, nodes: 8, items: 4, key_bytes: 5, number_bytes: 6 };

    fn fault(text: &str) -> Option<JsonFault> {
        check(text.as_bytes(), &SMALL).err()
    }

    #[test]
    fn each_limit_holds_exactly() {
        assert_eq!(fault("[[[]]]"), None);
        assert_eq!(fault("[[[[]]]]"), Some(JsonFault::Depth));
        assert_eq!(fault("[1,2,3,4]"), None);
        assert_eq!(fault("[1,2,3,4,5]"), Some(JsonFault::Items));
        assert_eq!(fault(r#"{"a":1,"b":1,"c":1,"d":1,"e":1}"#), Some(JsonFault::Items));
        assert_eq!(fault("[[1,2,3],[4,5]]"), None);
        assert_eq!(fault("[[1,2,3],[4,5,6]]"), Some(JsonFault::Nodes));
        assert_eq!(fault(r#"{"abcde":"a longer value is fine"}"#), None);
        assert_eq!(fault(r#"{"abcdef":1}"#), Some(JsonFault::Key));
        assert_eq!(fault("123456"), None);
        assert_eq!(fault("1234567"), Some(JsonFault::Number));
    }

    #[test]
    fn strings_hide_structure() {
        assert_eq!(fault(r#"["[[[[[[","\"[[[[","\\"]"#), None);
    }

    fn count(value: &Value) -> usize {
        1 + match value {
            Value::Array(items) => items.iter().map(count).sum(),
            Value::Object(members) => members.values().map(count).sum(),
            _ => 0,
        }
    }

    fn document() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(".{0,4}", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect()))
            ]
        })
    }

    proptest! {
        #[test]
        fn nodes_are_counted_as_a_parser_sees_them(value in document(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) }.unwrap();
            let nodes = count(&value);
            let exact = JsonLimits { depth: 64, nodes, items: 64, key_bytes: 64, number_bytes: 64 };
            prop_assert_eq!(check(&text, &exact), Ok(()));
            let less = JsonLimits { nodes: nodes - 1, ..exact };
            prop_assert_eq!(check(&text, &less), Err(JsonFault::Nodes));
        }

        #[test]
        fn any_bytes_end_in_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let outcome = check(&bytes, &SMALL);
            prop_assert!(outcome.is_ok() || outcome.is_err());
        }
    }
}
