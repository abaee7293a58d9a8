//! Paths, slices and raw content.

use proptest::prelude::*;

use super::*;
use crate::render::inline;
use crate::testing::{Blobs, cut, ran, stored, v};
use crate::{Range, convert};

fn at(value: &Value, path: &str) -> String {
    match select(value, path, &Blobs::default()) {
        Ok(found) => format!("{} {}", found.type_name(), inline(&found)),
        Err(error) => error.reason().unwrap_or("evicted").to_owned(),
    }
}

#[test]
fn output_is_reached_by_name() {
    let outcome: Value = ran(0, "a\nb\n", "").into();
    assert_eq!(at(&outcome, "stdout"), "bytes bytes(4b)");
    assert_eq!(at(&outcome, "err"), "str \"\"");
    assert_eq!(at(&outcome, "status"), "int 0");
    assert_eq!(at(&outcome, "signal"), "null null");
    assert_eq!(at(&outcome, "dur_ns"), "duration 1us");
    assert_eq!(at(&outcome, "nope"), "path");
    assert_eq!(at(&outcome, "stdout[0]"), "int 97");
    assert_eq!(at(&outcome, "stdout[4]"), "path");
}

#[test]
fn tables_have_rows_and_columns() {
    let outcome: Value = ran(0, r#"[{"a":1,"b":"x"},{"a":2}]"#, "").into();
    assert_eq!(at(&outcome, "a"), "list [1, 2]");
    assert_eq!(at(&outcome, "b"), "list [\"x\", null]");
    assert_eq!(at(&outcome, ".rows[0].a"), "int 1");
    assert_eq!(at(&outcome, "rows[1].b"), "path");
    assert_eq!(at(&outcome, "out[0]"), "record {a: 1, b: \"x\"}");
    assert_eq!(at(&outcome, "out[0..2]"), "table [{a: 1, b: \"x\"}, {a: 2}]");
    assert_eq!(at(&outcome, "[0]"), "path");
}

#[test]
fn malformed_and_absent_steps_are_refused() {
    let list = convert::to_list(&Range::exclusive(1, 2_000).into()).unwrap().into();
    for bad in ["[9999]", "[-1]", "[5..]", "[0", "x"] {
        assert_eq!(at(&list, bad), "path", "{bad}");
    }
    assert_eq!(at(&list, "[1990..99999]"), "list [1991, 1992, 1993, 1994, 1995, 1996, 1997, 1998, 1999]");
    assert_eq!(at(&list, "[5..3]"), "list []");
    assert_eq!(at(&Value::Int(1), ".."), "int 1");
    assert_eq!(at(&Range::exclusive(1, 3).into(), "inclusive"), "bool false");
    assert_eq!(at(&ErrorValue::new("c", "m").into(), "stderr"), "null null");
}

#[test]
fn slices_count_in_the_units_of_the_type() {
    let store = Blobs::default();
    let part = |value: Value, a, b| slice(&value, a, b, &store).map(|found| inline(&found));
    assert_eq!(part("héllo wörld".into(), 1, 4).unwrap(), "\"éll\"");
    assert_eq!(part(v("[1, 2, 3]"), 3, 1).unwrap(), "[]");
    assert_eq!(part(v("[1, 2, 3]"), 5_000, 6_000).unwrap(), "[]");
    assert_eq!(part(v(r#"[{"a":1},{"a":2}]"#), 1, 9).unwrap(), "[{a: 2}]");
    assert_eq!(part(Value::Int(1), 0, 1).unwrap_err().reason(), Some("slice"));
    assert_eq!(part(cut("abc", "xyz", 99).into(), 2, 4).unwrap(), "bytes(2b)");
}

#[test]
fn stored_bytes_are_read_from_the_store() {
    let blob = b"hello world".to_vec();
    let value = Value::Bytes(stored(&blob));
    let mut store = Blobs::default();
    assert_eq!(slice(&value, 0, 5, &store).unwrap_err(), SelectError::Evicted);
    store.0.insert(blake3::hash(&blob).to_hex().to_string(), blob);
    assert_eq!(raw(&slice(&value, 6, 99, &store).unwrap(), &store).unwrap(), Raw::Bytes(b"world".to_vec()));
    assert_eq!(inline(&select(&value, "[4]", &store).unwrap()), "111");
    assert_eq!(raw(&value, &store).unwrap(), Raw::Bytes(b"hello world".to_vec()));
}

#[test]
fn raw_content_is_text_or_bytes_up_to_a_size() {
    let store = Blobs::default();
    assert_eq!(raw(&Value::str("é"), &store), Ok(Raw::Text("é".into())));
    assert_eq!(raw(&v("[1]"), &store), Err(SelectError::Format("list")));
    let zeros = Value::Bytes(vec![0; 200_000].into());
    assert_eq!(raw(&zeros, &store), Err(SelectError::TooLarge { total: 200_000, unit: "bytes" }));
    let part = slice(&zeros, 0, 16, &store).unwrap();
    assert_eq!(raw(&part, &store), Ok(Raw::Bytes(vec![0; 16])));
    let text = Value::from("é".repeat(40_000));
    assert_eq!(raw(&text, &store), Err(SelectError::TooLarge { total: 40_000, unit: "chars" }));
}

proptest! {
    #[test]
    fn a_range_step_is_a_slice(text in ".{0,20}", a in 0u64..25, b in 0u64..25) {
        let store = Blobs::default();
        let value = Value::from(text.clone());
        let by_path = select(&value, &format!("[{a}..{b}]"), &store).unwrap();
        let chars: Vec<char> = text.chars().collect();
        let end = usize::try_from(b).unwrap().min(chars.len());
        let expected: String = chars[usize::try_from(a).unwrap().min(end)..end].iter().collect();
        prop_assert_eq!(by_path.as_str(), Some(&*expected));
        let by_slice = slice(&value, a, b, &store).unwrap();
        prop_assert_eq!(by_slice.as_str(), Some(&*expected));
    }

    #[test]
    fn cut_bytes_slice_like_what_was_kept(head in "[a-z]{0,9}", tail in "[a-z]{0,9}", a in 0u64..25, b in 0u64..25) {
        let store = Blobs::default();
        let kept = format!("{head}{tail}").into_bytes();
        let end = usize::try_from(b).unwrap().min(kept.len());
        let expected = kept[usize::try_from(a).unwrap().min(end)..end].to_vec();
        let part = slice(&cut(&head, &tail, 99).into(), a, b, &store).unwrap();
        prop_assert_eq!(raw(&part, &store).unwrap(), Raw::Bytes(expected));
    }
}
