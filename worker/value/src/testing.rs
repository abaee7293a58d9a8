//! What the tests of this crate share: values of every kind, and a store.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::tz::TimeZone;
use proptest::prelude::*;

use crate::bytes::{Cut, Stored};
use crate::outcome::{Out, OutcomeBody};
use crate::select::Store;
use crate::{
    Bytes, Callable, DateTime, ErrorValue, Glob, Outcome, PathValue, Range, Record, Regex, StreamSource, Table,
    TaskHandle, TimeOfDay, Value, json,
};

/// A value written as JSON.
pub(crate) fn v(text: &str) -> Value {
    json::parse(text).unwrap()
}

pub(crate) fn datetime(text: &str) -> Value {
    DateTime::parse(text, &TimeZone::UTC).unwrap().into()
}

pub(crate) fn stored(content: &[u8]) -> Bytes {
    Bytes::Stored(Arc::new(Stored {
        hash: blake3::hash(content).to_hex().as_str().into(),
        len: content.len() as u64,
        preview: content[..content.len().min(4_096)].into(),
        tail: (*b"").into(),
        truncated: false,
    }))
}

pub(crate) fn cut(head: &str, tail: &str, total: u64) -> Bytes {
    Bytes::Cut(Arc::new(Cut { head: head.as_bytes().into(), tail: tail.as_bytes().into(), total }))
}

/// The outcome of a program that ended with `status`.
pub(crate) fn program(cmd: &str, status: i64, stdout: &str, stderr: &str) -> OutcomeBody {
    OutcomeBody {
        status: Some(status),
        ok: status == 0,
        pid: Some(7),
        stderr: stderr.as_bytes().into(),
        out: Out::Stdout,
        ..OutcomeBody::builtin(cmd, Value::Null, stdout.as_bytes().into(), 1_000)
    }
}

pub(crate) fn ran(status: i64, stdout: &str, stderr: &str) -> Outcome {
    Outcome::new(program("prog -x", status, stdout, stderr))
}

pub(crate) struct Named(pub(crate) &'static str);

impl Callable for Named {
    fn repr(&self) -> String {
        format!("fn {}(x)", self.0)
    }

    fn builtin_name(&self) -> Option<&str> {
        Some(self.0)
    }
}

pub(crate) struct Lambda;

impl Callable for Lambda {
    fn repr(&self) -> String {
        "closure(p)".to_owned()
    }
}

impl StreamSource for Lambda {
    fn label(&self) -> crate::Str {
        "list".into()
    }
}

impl TaskHandle for Lambda {
    fn id(&self) -> u64 {
        3
    }

    fn is_done(&self) -> bool {
        true
    }
}

/// A store of blobs in memory.
#[derive(Default)]
pub(crate) struct Blobs(pub(crate) HashMap<String, Vec<u8>>);

impl Store for Blobs {
    fn read(&self, hash: &str, start: u64, end: u64) -> Option<Vec<u8>> {
        let range = usize::try_from(start).unwrap()..usize::try_from(end).unwrap();
        self.0.get(hash).map(|blob| blob[range].to_vec())
    }
}

/// A value nested `depth` levels deep, through lists, records and tables.
pub(crate) fn nested(depth: usize) -> Value {
    let mut value = Value::Int(1);
    while value.depth() < depth {
        let left = depth - value.depth();
        value = match left % 3 {
            1 => Value::list(vec![value]).unwrap(),
            2 => Value::record([("key", value)]).unwrap(),
            _ => Table::new(vec![Record::new([("cell", value)]).unwrap()]).unwrap().into(),
        };
    }
    value
}

/// Any scalar that the wire form gives back equal.
fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        (proptest::num::f64::NORMAL | proptest::num::f64::ZERO | proptest::num::f64::INFINITE).prop_map(Value::Float),
        ".{0,12}".prop_map(Value::from),
        prop::collection::vec(any::<u8>(), 0..12).prop_map(|b| Value::Path(b.into())),
        prop::collection::vec(any::<u8>(), 0..400).prop_map(|b| Value::Bytes(b.into())),
        any::<u64>().prop_map(Value::Size),
        any::<i64>().prop_map(Value::Duration),
        (0..4_102_444_800i128, 0..1_000_000_000i128)
            .prop_map(|(s, ns)| DateTime::from_unix_nanos(s * 1_000_000_000 + ns).into()),
        (0u8..24, 0u8..60, 0u8..60).prop_map(|(h, m, s)| TimeOfDay::new(h, m, s).into()),
        ("[a-z*?/]{0,8}", any::<bool>()).prop_map(|(p, h)| Glob::new(p, PathValue::from("/w"), h).into()),
        "[a-z]{0,8}".prop_map(|src| Regex::new(&src).ok().into()),
        any::<(i64, i64, bool)>().prop_map(|(start, end, inclusive)| Range { start, end, inclusive }.into()),
        ("[a-z_]{1,8}", ".{0,20}").prop_map(|(code, msg)| ErrorValue::new(code, msg).with_hint("h").into()),
        ("[a-z]{0,8}", 0u64..40).prop_map(|(head, more)| cut(&head, "end", head.len() as u64 + 3 + more).into()),
        prop::collection::vec(any::<u8>(), 0..50).prop_map(|b| stored(&b).into()),
        "[A-Z]{1,5}".prop_map(|name| Value::Secret(name.into())),
    ]
}

/// Any value that the wire form gives back equal.
pub(crate) fn any_value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 64, 6, |inner| {
        let record =
            prop::collection::vec(("[a-zé \"]{0,4}", inner.clone()), 0..6).prop_map(|m| Record::new(m).unwrap());
        let rows = prop::collection::vec(prop::collection::vec(inner.clone(), 2), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(|items| Value::list(items).unwrap()),
            record.prop_map(Value::Record),
            rows.prop_map(|rows| {
                let shape = crate::record::Shape::new(["a", "b"]);
                let rows = rows.into_iter().map(|cells| Record::with_shape(&shape, cells).unwrap());
                Table::with_columns(["a", "b"], rows.collect()).unwrap().into()
            }),
        ]
    })
}
