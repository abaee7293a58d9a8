//! Event paging against a model: whatever is published, marked, read and restarted, pages have no gap and no number twice.

use proptest::prelude::*;

use super::{Bus, ChannelKey, RESERVE};
use crate::clients::ConnId;

/// What a test does to a channel.
#[derive(Clone, Debug)]
enum Op {
    /// Publishes a payload of so many bytes.
    Publish(usize),
    /// The database takes the marks that were asked for.
    Mark,
    /// Reads forward from a place in what was shown, in pages of so many.
    Read(usize, usize),
    /// The broker is replaced: the next one knows the marks in the database.
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => prop_oneof![Just(1usize), 1usize..64, Just(300_000usize)].prop_map(Op::Publish),
        3 => Just(Op::Mark),
        3 => (0usize..2000, 1usize..300).prop_map(|(at, limit)| Op::Read(at, limit)),
        1 => Just(Op::Restart),
    ]
}

/// Reads forward until nothing is left; the numbers read.
fn read_all(bus: &mut Bus, key: &ChannelKey, since: u64, limit: usize) -> Result<Vec<u64>, TestCaseError> {
    let (mut at, mut read) = (since, Vec::new());
    loop {
        let page = bus.page(key, 0, Some(at), limit);
        prop_assert!(page.events.len() <= limit);
        prop_assert_eq!(page.history_lost, page.oldest.is_some_and(|oldest| at + 1 < oldest));
        read.extend(page.events.iter().map(|event| event.seq));
        match page.events.last() {
            Some(last) => at = last.seq,
            None => prop_assert!(!page.truncated, "an empty page is the end"),
        }
        if !page.truncated {
            return Ok(read);
        }
    }
}

proptest! {
    #[test]
    fn pages_follow_what_was_published_over_restarts(ops in proptest::collection::vec(op(), 1..400)) {
        let key: ChannelKey = ("a".into(), "user.x".into());
        let mut bus = Bus::default();
        // What the database holds, what is on its way there, and every number that was ever shown.
        let (mut marked, mut asked) = (None::<u64>, None::<u64>);
        let mut shown: Vec<u64> = Vec::new();
        let mut published = 0u64;
        let subscribed = bus.subscribe(&key, 0, ConnId(1), false, None);
        prop_assert_eq!(subscribed.next_seq, 0);
        for op in ops {
            match op {
                Op::Publish(len) => {
                    let told = bus.publish(&key, 0, &"x".repeat(len));
                    published += 1;
                    asked = told.reserve.or(asked);
                    shown.extend(told.deliveries.iter().map(|delivery| delivery.seq));
                }
                Op::Mark => {
                    if let Some(mark) = asked.take() {
                        marked = Some(mark);
                        shown.extend(bus.marked(&key, mark).iter().map(|delivery| delivery.seq));
                    }
                }
                Op::Read(at, limit) => {
                    let since = shown.get(at % shown.len().max(1)).copied().unwrap_or(0);
                    let read = read_all(&mut bus, &key, since, limit)?;
                    let first = read.first().copied();
                    // Without a gap, and up to the newest that was shown.
                    prop_assert!(read.windows(2).all(|pair| pair[1] == pair[0] + 1), "{read:?}");
                    prop_assert!(first.is_none_or(|first| first > since));
                    let newest = shown.last().copied().filter(|newest| *newest > since);
                    prop_assert_eq!(read.last().copied(), newest);
                }
                Op::Restart => {
                    asked = None;
                    bus = Bus::resume(marked.map(|mark| (key.clone(), mark)));
                    // The next broker reserves a block more before it serves, and opens with an event of its own.
                    marked = marked.map(|mark| mark + RESERVE);
                    let opening = bus.page(&key, 0, None, 1);
                    shown.extend(opening.events.iter().map(|event| event.seq));
                    bus.subscribe(&key, 0, ConnId(1), false, None);
                }
            }
            prop_assert!(shown.windows(2).all(|pair| pair[0] < pair[1]), "a number came twice: {shown:?}");
        }
        prop_assert!(shown.len() as u64 <= published + 400);
    }
}
