//! Records, tables and ranges.

use proptest::prelude::*;

use super::*;
use crate::render::inline;
use crate::testing::v;
use crate::{List, Table};

#[test]
fn keys_keep_their_place() {
    let record = Record::new([("b", Value::Int(1)), ("a", Value::Int(2)), ("b", Value::Int(3))]).unwrap();
    assert_eq!(inline(&record.clone().into()), "{b: 3, a: 2}");
    let set = record.set("b", Value::Int(4)).unwrap().set("c", Value::Int(5)).unwrap();
    assert_eq!(inline(&set.clone().into()), "{b: 4, a: 2, c: 5}");
    assert_eq!(inline(&set.without(&["a", "zz"]).into()), "{b: 4, c: 5}");
    let merged = record.merge(&Record::leaves([("a", Leaf::from(9)), ("z", Leaf::null())]));
    assert_eq!(inline(&merged.into()), "{b: 3, a: 9, z: null}");
}

#[test]
fn columns_come_in_first_seen_order() {
    let Value::Table(table) = v(r#"[{"b":1},{"a":2,"b":3}]"#) else { panic!("not a table") };
    assert_eq!(table.columns().iter().map(|c| &**c).collect::<Vec<_>>(), ["b", "a"]);
    assert_eq!(inline(&table.column("a").unwrap().into()), "[null, 2]");
    assert!(table.column("z").is_none());
    assert_eq!(inline(&table.to_list().into()), "[{b: 1}, {a: 2, b: 3}]");
    let empty = Table::with_columns(["x"], vec![]).unwrap();
    assert_eq!((empty.len(), empty.columns().len()), (0, 1));
    assert_eq!(inline(&Table::from_columns(vec![("x".into(), vec![]), ("y".into(), vec![])]).unwrap().into()), "[]");
}

#[test]
fn ranges_count_without_overflow() {
    let all = Range { start: i64::MIN, end: i64::MAX, inclusive: true };
    assert_eq!(all.count(), 1 << 64);
    assert_eq!(Range { start: i64::MAX, end: i64::MAX, inclusive: true }.iter().collect::<Vec<_>>(), [i64::MAX]);
    assert!(Range::exclusive(5, 1).is_empty());
    assert!(!Range::exclusive(1, 5).contains(5));
}

proptest! {
    /// A record behaves like a list of pairs in which a later value of a key replaces the first.
    #[test]
    fn a_record_is_its_pairs(pairs in prop::collection::vec(("[a-z]{1,2}", any::<i64>()), 0..60)) {
        let mut model: Vec<(String, i64)> = Vec::new();
        for (key, n) in &pairs {
            match model.iter_mut().find(|(k, _)| k == key) {
                Some(member) => member.1 = *n,
                None => model.push((key.clone(), *n)),
            }
        }
        let record = Record::new(pairs.iter().map(|(k, n)| (k.as_str(), Value::Int(*n)))).unwrap();
        prop_assert_eq!(record.len(), model.len());
        for ((key, value), (model_key, n)) in record.iter().zip(&model) {
            prop_assert_eq!(&**key, model_key);
            prop_assert!(matches!(value, Value::Int(v) if v == n));
            prop_assert!(record.get(model_key).is_some());
        }
        prop_assert!(record.get("absent").is_none());
    }

    #[test]
    fn slices_of_lists_are_slices(items in prop::collection::vec(any::<i64>(), 0..20), a in 0usize..25, b in 0usize..25) {
        let list = List::leaves(items.iter().copied());
        let end = b.min(items.len());
        let expected = List::leaves(items[a.min(end)..end].iter().copied());
        prop_assert_eq!(inline(&List::slice(&list, a, b).into()), inline(&expected.into()));
    }
}
