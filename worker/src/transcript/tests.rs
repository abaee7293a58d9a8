use shoal_value::wire::to_wire;

use super::shed::tests::Stored;
use super::*;

fn results(next: u64) -> (Arc<Results>, Arc<Stored>) {
    let store = Arc::new(Stored::default());
    (Results::starting_at(next, false, store.clone()), store)
}

fn int(n: i64) -> Entry {
    Entry::new(Value::Int(n), true, "src", Some("{}"))
}

fn is_int(value: Result<Option<Value>, ErrorValue>, n: i64) -> bool {
    matches!(value, Ok(Some(Value::Int(got))) if got == n)
}

/// A result of so many bytes, all of them `letter`, that the store has.
fn text(results: &Results, store: &Stored, letter: char, bytes: usize) -> u64 {
    let value = Value::str(letter.to_string().repeat(bytes));
    let wire = to_wire(&value, usize::MAX).expect("no limit");
    store.put(wire.as_bytes());
    let n = results.push(Entry::new(value, true, "", Some(&wire)));
    drop(results.stored(n));
    n
}

fn is_held(results: &Results, n: u64) -> bool {
    let kept = results.lock();
    kept.place(n).and_then(|at| kept.entries.get(at)).is_some_and(|entry| entry.value.is_some())
}

#[test]
fn numbers_count_on_and_a_snapshot_does_not_move() {
    let (results, _) = results(5);
    assert_eq!(results.push(int(50)), 5);
    let snapshot = results.snapshot();
    assert_eq!(results.push(int(60)), 6);
    assert!(is_int(snapshot.nth(5), 50) && is_int(snapshot.nth(-1), 50));
    for n in [6, 4, 0] {
        assert!(matches!(snapshot.nth(n), Ok(None)));
    }
    assert!(is_int(snapshot.newest().map(Some), 50));
    assert_eq!(snapshot.table().expect("a table").len(), 1);
}

#[test]
fn the_newest_value_is_neither_null_nor_an_error() {
    let (results, _) = results(1);
    assert!(results.snapshot().newest().expect("nothing to read").is_null());
    results.push(int(7));
    results.push(Entry::new(Value::Null, true, "", None));
    results.push(Entry::new(Value::Error(ErrorValue::type_error("x")), false, "", None));
    assert!(is_int(results.snapshot().newest().map(Some), 7));
}

#[test]
fn small_results_are_held_by_count() {
    let (results, store) = results(1);
    (0..2000).for_each(|n| {
        results.push(int(n));
    });
    assert!(matches!(results.value(976), Ok(None)) && is_int(results.value(977), 976));
    for _ in 0..4 {
        text(&results, &store, 'x', HELD);
    }
    assert!(is_int(results.value(1000), 999), "large ones do not push them out");
}

#[test]
fn large_results_are_left_to_the_store_and_read_back() {
    let (results, store) = results(1);
    let first = text(&results, &store, 'a', HELD / 2);
    let second = text(&results, &store, 'b', HELD / 3);
    assert!(is_held(&results, first) && is_held(&results, second));
    let third = text(&results, &store, 'c', HELD / 3);
    assert!(!is_held(&results, first) && is_held(&results, second) && is_held(&results, third));
    assert!(results.lock().held <= HELD);
    let back = results.value(first).expect("stored").expect("known");
    assert!(back.as_str().is_some_and(|text| text.len() == HELD / 2 && text.starts_with('a')));
    assert!(results.take_read_back() && !results.take_read_back(), "said once");
    assert!(!is_held(&results, first), "reading it does not take memory for good");
    assert_eq!(results.snapshot().table().expect("a table").len(), 3);
    let newest = text(&results, &store, 'd', 3 * HELD);
    assert!(is_held(&results, newest) && !is_held(&results, third), "the newest is held whatever its size");
}

#[test]
fn what_the_store_does_not_have_stays_longer() {
    let (results, store) = results(1);
    let value = Value::str("x".repeat(HELD));
    let raised = results.push(Entry::new(value.clone(), false, "", None));
    let wire = to_wire(&value, usize::MAX).expect("no limit");
    let unrecorded = results.push(Entry::new(value, true, "", Some(&wire)));
    text(&results, &store, 'y', HELD);
    results.push(int(1));
    assert!(is_held(&results, raised) && is_held(&results, unrecorded));
    for _ in 0..MOST / HELD {
        results.push(Entry::new(Value::str("z".repeat(HELD)), false, "", None));
    }
    assert!(matches!(results.value(raised), Ok(None)));
    assert!(results.lock().held <= MOST + HELD);
}

#[test]
fn a_stored_result_that_cannot_be_read_is_an_error_and_not_another_value() {
    let (results, store) = results(1);
    let first = text(&results, &store, 'a', HELD);
    text(&results, &store, 'b', HELD);
    let (unreadable, _) = self::results(1);
    let shed = results.lock().entries.front().and_then(|entry| entry.shed.clone());
    unreadable.push(Entry { value: None, shed, ..int(0) });
    assert!(results.value(first).is_ok() && unreadable.value(1).is_err());
}
