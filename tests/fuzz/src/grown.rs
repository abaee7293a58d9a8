//! Edge messages grown by asking their decoder: a valid body of each type, changed step by step where it stays valid.
//!
//! Random bytes rarely get past the first length of a body. A body that decodes and is changed by one item, one variant
//! or one number reaches what is behind it, and what is one byte from valid is the likeliest to be taken for it.

use shoal_proto::{
    Message, broker_launcher, broker_ptyd, broker_worker, launcher_ptyd, launcher_worker, supervisor_broker,
    supervisor_launcher,
};

use crate::Random;

/// A type whose smallest body is longer does not exist.
const MAX_SMALLEST: usize = 64;
/// A body that grew to this starts again.
const MAX_GROWN: usize = 2_000;

/// Grows bodies of every type of every edge for some steps each; says how many were valid.
pub fn grow_all(random: &mut Random, steps: usize) -> usize {
    macro_rules! grow {
        ($($module:ident :: $message:ident),+ $(,)?) => {
            [$(grow_edge::<$module::$message>($module::$message::KINDS, random, steps)),+].iter().sum()
        };
    }
    grow!(
        supervisor_broker::ToBroker,
        supervisor_broker::ToSupervisor,
        supervisor_launcher::ToLauncher,
        supervisor_launcher::ToSupervisor,
        broker_launcher::ToLauncher,
        broker_launcher::ToBroker,
        broker_worker::ToWorker,
        broker_worker::ToBroker,
        broker_ptyd::ToPtyd,
        broker_ptyd::ToBroker,
        launcher_worker::ToWorker,
        launcher_worker::ToLauncher,
        launcher_ptyd::ToPtyd,
        launcher_ptyd::ToLauncher,
    )
}

fn grow_edge<M: Message + PartialEq + std::fmt::Debug>(kinds: &[u8], random: &mut Random, steps: usize) -> usize {
    kinds.iter().map(|kind| grow::<M>(*kind, random, steps)).sum()
}

fn grow<M: Message + PartialEq + std::fmt::Debug>(kind: u8, random: &mut Random, steps: usize) -> usize {
    // Zeros are empty texts and lists, first variants, and absent options.
    let smallest = (0..MAX_SMALLEST).map(|len| vec![0; len]).find(|body| M::decode_body(kind, body).is_ok());
    let smallest = smallest.unwrap_or_else(|| panic!("{} {kind}: no body of zeros", M::EDGE));
    let (mut body, mut valid) = (smallest.clone(), 0);
    for _ in 0..steps {
        let changed = change(&body, random);
        check::<M>(kind, &changed);
        if M::decode_body(kind, &changed).is_ok() {
            valid += 1;
            near::<M>(kind, &changed, random);
            body = if changed.len() > MAX_GROWN { smallest.clone() } else { changed };
        }
    }
    valid
}

/// One item more, one variant on, or a number at an edge of its type.
fn change(body: &[u8], random: &mut Random) -> Vec<u8> {
    const NUMBERS: [&[u8]; 7] = [
        &[0xFA],
        &[0xFB, 0xFB, 0],
        &[0xFC, 0, 0, 1, 0],
        &[0xFD, 0, 0, 0, 0, 1, 0, 0, 0],
        &[0xFD, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
        &[0xFC, 0xFF, 0xFF, 0xFF, 0xFF],
        &[0xFE],
    ];
    let mut bytes = body.to_vec();
    let at = random.below(bytes.len().max(1));
    if bytes.is_empty() {
        return vec![0];
    }
    match random.below(4) {
        // A length with as many bytes after it: a text, or a list of small items.
        0 => {
            let len = random.below(6);
            let items = std::iter::repeat_n(b'a', len);
            let length = u8::try_from(len).unwrap_or(0);
            bytes.splice(at..=at, std::iter::once(length).chain(items));
        }
        // One item, or something that was absent, whose fields are zeros.
        1 => {
            let fields = random.below(12);
            bytes.splice(at..=at, std::iter::once(1).chain(std::iter::repeat_n(0, fields)));
        }
        2 => bytes[at] = bytes[at].wrapping_add(1),
        _ => {
            let number = NUMBERS[random.below(NUMBERS.len())];
            bytes.splice(at..=at, number.iter().copied());
        }
    }
    bytes
}

/// What is one byte from valid: cut, longer, or another type.
fn near<M: Message + PartialEq + std::fmt::Debug>(kind: u8, body: &[u8], random: &mut Random) {
    let longer = [body, &[0]].concat();
    assert!(M::decode_body(kind, &longer).is_err(), "{} {kind}: a trailing byte is taken", M::EDGE);
    let cut = random.below(body.len().max(1));
    check::<M>(kind, body.get(..cut).unwrap_or_default());
    check::<M>(kind.wrapping_add(1), body);
}

/// A body decodes to a message that comes back the same, or is refused with words.
fn check<M: Message + PartialEq + std::fmt::Debug>(kind: u8, body: &[u8]) {
    match M::decode_body(kind, body) {
        Ok(message) => {
            let again = message.encode_body().unwrap_or_else(|e| panic!("{}: what decodes encodes: {e}", M::EDGE));
            assert_eq!(M::decode_body(kind, &again).as_ref(), Ok(&message), "{}", M::EDGE);
        }
        Err(violation) => assert!(!violation.to_string().is_empty()),
    }
}
