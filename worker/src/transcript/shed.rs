//! A large result that was left to the content store, and how it is made whole again.
//!
//! The broker stores the streams of an outcome and the wire form of every value, each under the hash of its bytes. So a
//! hash is all that has to stay here, and what comes back is exactly what was there.

use shoal_value::outcome::{Out, OutcomeBody};
use shoal_value::wire::from_wire;
use shoal_value::{Bytes, ErrorValue, Outcome, Str, Value, code};

/// A wire form beyond this is not read back: reading it takes several times its size for a moment.
const MAX_WIRE: usize = 64 * 1024 * 1024;
/// Bytes of a stream that stay with its outcome.
const SMALL: usize = 1024;

/// The content store, as results are read back from it.
pub(crate) trait Blobs: Send + Sync {
    /// All bytes of a blob.
    fn fetch(&self, hash: &str) -> Result<Vec<u8>, ErrorValue>;
}

/// What stays of a result.
#[derive(Clone, Debug)]
pub(crate) enum Shed {
    /// The hash of its wire form.
    Value(Str),
    /// An outcome without its large streams.
    Outcome(Box<Hollow>),
}

/// An outcome without its large streams.
#[derive(Clone, Debug)]
pub(crate) struct Hollow {
    body: OutcomeBody,
    stdout: Option<Str>,
    stderr: Option<Str>,
    /// Hash of the whole wire form, when `out` is not made from standard output.
    wire: Option<Str>,
}

impl Shed {
    /// What has to stay of a value with this wire form, once both are stored; nothing if it could not be read back.
    pub(crate) fn of(value: &Value, wire: &str) -> Option<Self> {
        let hash_of_wire = || (wire.len() <= MAX_WIRE).then(|| hash(wire.as_bytes()));
        let Value::Outcome(outcome) = value else { return hash_of_wire().map(Self::Value) };
        let mut body = outcome.body().clone();
        let wire = match std::mem::replace(&mut body.out, Out::Stdout) {
            Out::Value(_) => Some(hash_of_wire()?),
            Out::Stdout => None,
        };
        let (stdout, stderr) = (leave(&mut body.stdout)?, leave(&mut body.stderr)?);
        Some(Self::Outcome(Box::new(Hollow { body, stdout, stderr, wire })))
    }

    /// The result as it was.
    pub(crate) fn restore(&self, blobs: &dyn Blobs) -> Result<Value, ErrorValue> {
        let Hollow { body, stdout, stderr, wire } = match self {
            Self::Value(hash) => return read(blobs, hash),
            Self::Outcome(hollow) => &**hollow,
        };
        let mut body = body.clone();
        if let Some(hash) = stdout {
            body.stdout = blobs.fetch(hash)?.into();
        }
        if let Some(hash) = stderr {
            body.stderr = blobs.fetch(hash)?.into();
        }
        if let Some(hash) = wire
            && let Value::Outcome(written) = read(blobs, hash)?
        {
            body.out = Out::Value(written.peek_out().clone());
        }
        Ok(Outcome::new(body).into())
    }
}

/// Leaves a large stream to the store: its hash. Nothing at all if the store has only a part of it.
#[allow(clippy::option_option, reason = "whether it can be left, and whether it was")]
fn leave(stream: &mut Bytes) -> Option<Option<Str>> {
    match stream {
        Bytes::Cut(_) => None,
        Bytes::Held(held) if held.len() > SMALL => {
            let hash = hash(held);
            *stream = Bytes::empty();
            Some(Some(hash))
        }
        Bytes::Held(_) | Bytes::Stored(_) => Some(None),
    }
}

fn read(blobs: &dyn Blobs, hash: &str) -> Result<Value, ErrorValue> {
    let damaged = |why: String| ErrorValue::new(code::IO_ERROR, format!("the stored result: {why}"));
    let text = String::from_utf8(blobs.fetch(hash)?).map_err(|e| damaged(e.to_string()))?;
    from_wire(&text).map_err(|e| damaged(e.to_string()))
}

fn hash(bytes: &[u8]) -> Str {
    blake3::hash(bytes).to_hex().as_str().into()
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::HashMap;
    use std::sync::Mutex;

    use shoal_value::wire::to_wire;
    use shoal_value::{equal, outcome};

    use super::*;

    /// A store in memory.
    #[derive(Default)]
    pub(in crate::transcript) struct Stored(Mutex<HashMap<String, Vec<u8>>>);

    impl Stored {
        pub(in crate::transcript) fn put(&self, bytes: &[u8]) {
            self.0.lock().expect("no panic").insert(hash(bytes).to_string(), bytes.to_vec());
        }
    }

    impl Blobs for Stored {
        fn fetch(&self, hash: &str) -> Result<Vec<u8>, ErrorValue> {
            let found = self.0.lock().expect("no panic").get(hash).cloned();
            found.ok_or_else(|| ErrorValue::new(code::NOT_FOUND, "no such blob"))
        }
    }

    /// A result as it is told to the broker, which stores it.
    fn shed(value: &Value, store: &Stored) -> Shed {
        let wire = to_wire(value, usize::MAX).expect("no limit");
        store.put(wire.as_bytes());
        if let Value::Outcome(outcome) = value {
            for stream in [&outcome.stdout, &outcome.stderr] {
                store.put(stream.held().expect("in memory"));
            }
        }
        Shed::of(value, &wire).expect("all of it is stored")
    }

    fn ran(stdout: &[u8], stderr: &[u8], out: Out) -> OutcomeBody {
        OutcomeBody { stderr: stderr.into(), out, ..OutcomeBody::builtin("x", Value::Null, stdout.into(), 5) }
    }

    #[test]
    fn the_bytes_of_an_outcome_come_back_exactly() {
        let store = Stored::default();
        let stdout = [b"\0\xff\x1b[1m\r\n".repeat(1000), b"end\n\n".to_vec()].concat();
        let body = OutcomeBody { capture: Some(outcome::Capture::default()), ..ran(&stdout, b"small", Out::Stdout) };
        let value = Value::Outcome(Outcome::new(body));
        let left = shed(&value, &store);
        let Shed::Outcome(hollow) = &left else { panic!("not an outcome: {left:?}") };
        assert!(hollow.body.stdout.is_empty() && hollow.stderr.is_none() && hollow.wire.is_none());
        let Value::Outcome(back) = left.restore(&store).expect("stored") else { panic!("not an outcome") };
        assert_eq!(back.stdout.held().map(|b| b.to_vec()), Some(stdout));
        assert_eq!((back.stderr.to_text_lossy(), back.dur_ns), ("small".into(), 5));
    }

    #[test]
    fn output_that_is_json_is_decoded_again() {
        let store = Stored::default();
        let text = format!("[{}1]", "1,".repeat(2000));
        let value = Value::Outcome(Outcome::new(ran(text.as_bytes(), b"", Out::Stdout)));
        let Value::Outcome(back) = shed(&value, &store).restore(&store).expect("stored") else { panic!("no outcome") };
        assert!(matches!(back.peek_out(), Value::List(list) if list.len() == 2001));
    }

    #[test]
    fn an_output_that_a_builtin_made_comes_from_the_wire_form() {
        let store = Stored::default();
        let made = Value::list((0..500).map(Value::Int).collect()).expect("flat");
        let value = Value::Outcome(Outcome::new(ran(&[b'x'; 5000], b"", Out::Value(made.clone()))));
        let Value::Outcome(back) = shed(&value, &store).restore(&store).expect("stored") else { panic!("no outcome") };
        assert!(equal::equal(back.peek_out(), &made).expect("comparable"));
        assert_eq!(back.stdout.len(), 5000);
    }

    #[test]
    fn other_values_come_from_their_wire_form() {
        let store = Stored::default();
        let value = Value::list(vec![Value::str("a".repeat(9000)), Value::Size(7)]).expect("flat");
        let back = shed(&value, &store).restore(&store).expect("stored");
        assert!(equal::equal(&back, &value).expect("comparable"));
        assert_eq!(&*shed(&value, &store).restore(&Stored::default()).expect_err("not stored").code, code::NOT_FOUND);
    }
}
