//! Streams made from values that are there already.

use shoal_value::{Bytes, ErrorValue, Value};

use super::bytes::load;
use super::items::Items;
use super::rows::{methods, optional};
use super::text::{split_lines, text};
use crate::registry::{Args, Method, Types};
use crate::stream::bounded;

const COLLECTION: Types = Types::COLLECTION;

pub(super) const METHODS: &[Method] = methods! {
    /// A stream of the items.
    ///
    /// shoal> [1, 2, 3].stream().map(x => x + 1).collect()
    /// [2, 3, 4]
    stream: COLLECTION, [], Plain(Types::STREAM), Pure, |recv, _| {
        let label = recv.type_name();
        Ok(bounded(label, Items::of(recv)?.into_vec()?))
    };

    /// A stream of the lines.
    ///
    /// shoal> "a\nb".stream().first()
    /// "a"
    stream: Types::STR, [], Plain(Types::STREAM), Pure, |recv, _| Ok(lines("str", text(&recv)?));

    /// A stream of the lines, with what is not UTF-8 replaced.
    ///
    /// shoal> "a\nb".save("f.txt"); path("f.txt").read_bytes().stream().len()
    /// 2
    stream: Types::BYTES, [], Plain(Types::STREAM), Nothing, |ctx, recv, _| match recv {
        // Of bytes that were cut, the text shows what is missing.
        Value::Bytes(cut @ Bytes::Cut(_)) => Ok(lines("bytes", &cut.to_text_lossy())),
        Value::Bytes(bytes) => Ok(lines("bytes", &String::from_utf8_lossy(&load(ctx, &bytes)?))),
        other => Err(ErrorValue::type_error(format!("expected bytes, found {}", other.type_name())).into()),
    };

    /// A list of `n` streams of the items, 2 if not given.
    ///
    /// shoal> [1, 2].tee(3).map(s => s.sum())
    /// [3, 3, 3]
    tee: COLLECTION, [optional("n", Types::INT)], Plain(Types::LIST), Pure, |recv, args| tee(recv, &args);
};

fn lines(label: &str, text: &str) -> Value {
    bounded(label, split_lines(text).map(Value::str).collect())
}

fn tee(recv: Value, args: &Args) -> Result<Value, ErrorValue> {
    let forks = args.count(0)?.unwrap_or(2);
    if forks == 0 {
        return Err(ErrorValue::arg_error("tee: n is 0, so nothing would get the items"));
    }
    let label = recv.type_name();
    let items = Items::of(recv)?.into_vec()?;
    Value::list((0..forks).map(|_| bounded(label, items.clone())).collect())
}
