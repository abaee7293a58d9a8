//! Walks over the deepest value there can be, on a stack of the size this crate asks for.

use std::hash::DefaultHasher;

use crate::render::{Style, block, inline};
use crate::testing::{Blobs, nested};
use crate::{MAX_DEPTH, NATIVE_STACK, Record, Table, Value, equal, json, select, weight, wire};

fn on_small_stack(walk: impl FnOnce(&Value) + Send + 'static) {
    on_stack(NATIVE_STACK, walk);
}

fn on_stack(size: usize, walk: impl FnOnce(&Value) + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(size);
    let walk = move || {
        let deep = nested(MAX_DEPTH);
        walk(&deep);
    };
    thread.spawn(walk).unwrap().join().unwrap();
}

#[test]
fn deeper_values_are_refused() {
    let deep = nested(MAX_DEPTH);
    assert_eq!(deep.depth(), MAX_DEPTH);
    let refusals = [
        Value::list(vec![deep.clone()]).unwrap_err(),
        Value::record([("k", deep.clone())]).unwrap_err(),
        Record::empty().set("k", deep.clone()).unwrap_err(),
        Table::from_columns(vec![("c".into(), vec![deep])]).unwrap_err(),
    ];
    for error in refusals {
        assert_eq!(&*error.code, "too_large");
    }
}

#[test]
fn deep_values_are_dropped() {
    on_small_stack(|deep| assert_eq!(deep.depth(), MAX_DEPTH));
}

#[test]
fn deep_values_are_compared() {
    on_small_stack(|deep| assert!(equal::equal(deep, &nested(MAX_DEPTH)).unwrap()));
}

#[test]
fn deep_values_are_hashed() {
    on_small_stack(|deep| equal::hash(deep, &mut DefaultHasher::new()));
}

#[test]
fn deep_values_are_rendered() {
    on_small_stack(|deep| {
        assert!(inline(deep).contains("cell: "));
        assert!(!block(deep, &Style::default()).is_empty());
    });
}

#[test]
fn deep_values_are_weighed() {
    on_small_stack(|deep| assert!(weight::weigh(deep).bytes > MAX_DEPTH));
}

#[test]
fn deep_values_are_encoded() {
    on_small_stack(|deep| assert!(!wire::to_wire(deep, usize::MAX).unwrap().is_empty()));
}

#[test]
fn deep_values_are_read_back() {
    on_stack(wire::READ_STACK, |deep| {
        let back = wire::from_wire(&wire::to_wire(deep, usize::MAX).unwrap()).unwrap();
        assert!(equal::equal(deep, &back).unwrap());
    });
}

#[test]
fn deep_json_is_read_up_to_the_limit() {
    on_small_stack(|deep| {
        let text = json::stringify(deep).unwrap();
        assert!(equal::equal(deep, &json::parse(&text).unwrap()).unwrap());
        let lists = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert_eq!(json::parse(&lists(MAX_DEPTH)).unwrap().depth(), MAX_DEPTH);
        assert_eq!(&*json::parse(&lists(MAX_DEPTH + 1)).unwrap_err().code, "too_large");
    });
}

#[test]
fn long_paths_reach_the_bottom() {
    let mut value = Value::Int(1);
    for _ in 0..MAX_DEPTH {
        value = Value::list(vec![value]).unwrap();
    }
    let found = select::select(&value, &"[0]".repeat(MAX_DEPTH), &Blobs::default()).unwrap();
    assert_eq!(inline(&found), "1");
}

#[test]
fn values_stay_small() {
    assert!(size_of::<Value>() <= 32);
}
