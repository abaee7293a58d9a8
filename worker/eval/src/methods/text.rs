//! Methods of str that need no regex: size, parts, case, padding. Positions and lengths count Unicode scalars.

use shoal_value::{ErrorValue, List, MAX_TEXT, Str, Value};

use super::rows::{Checked, methods, need, optional};
use crate::Ctx;
use crate::registry::{Args, Method, Param, Types};
use crate::unwind::Eval;

const STR: Types = Types::STR;

pub(super) const METHODS: &[Method] = methods! {
    /// Number of characters.
    ///
    /// shoal> "hello".len()
    /// 5
    len: STR, [], Plain(Types::INT), Text, length;

    /// Number of characters, like `len`.
    ///
    /// shoal> "grün".count()
    /// 4
    count: STR, [], Plain(Types::INT), Text, length;

    /// Whether it has no characters.
    ///
    /// shoal> "".is_empty()
    /// true
    is_empty: STR, [], Plain(Types::BOOL), Text, |text| Ok(Value::Bool(text.is_empty()));

    /// Its lines. A carriage return before a line break goes with it, and a final line break adds no empty line.
    ///
    /// shoal> "a\r\nb\n".lines()
    /// ["a", "b"]
    lines: STR, [], Plain(Types::LIST), Text, |text| Ok(lines_of(text).into());

    /// Its words: what blank space separates.
    ///
    /// shoal> "the quick  fox".words()
    /// ["the", "quick", "fox"]
    words: STR, [], Plain(Types::LIST), Text, |text| Ok(List::leaves(text.split_whitespace()).into());

    /// Its characters, each a str.
    ///
    /// shoal> "ab".chars()
    /// ["a", "b"]
    chars: STR, [], Plain(Types::LIST), Text, |text| Ok(List::leaves(text.chars().map(String::from)).into());

    /// Without blank space at both ends.
    ///
    /// shoal> "  x ".trim()
    /// "x"
    trim: STR, [], Plain(Types::STR), Pure, |recv, _| shortened(recv, str::trim);

    /// Without blank space at the start.
    ///
    /// shoal> "  x ".trim_start()
    /// "x "
    trim_start: STR, [], Plain(Types::STR), Pure, |recv, _| shortened(recv, str::trim_start);

    /// Without blank space at the end.
    ///
    /// shoal> "  x ".trim_end()
    /// "  x"
    trim_end: STR, [], Plain(Types::STR), Pure, |recv, _| shortened(recv, str::trim_end);

    /// In upper case.
    ///
    /// shoal> "shoal".upper()
    /// "SHOAL"
    upper: STR, [], Plain(Types::STR), Text, |text| recased(text, str::make_ascii_uppercase, str::to_uppercase);

    /// In lower case.
    ///
    /// shoal> "Shoal".lower()
    /// "shoal"
    lower: STR, [], Plain(Types::STR), Text, |text| recased(text, str::make_ascii_lowercase, str::to_lowercase);

    /// Whether it starts with this text.
    ///
    /// shoal> "hello".starts_with("he")
    /// true
    starts_with: STR, [Param::required_as("prefix", Types::STR, "requires a prefix")], Plain(Types::BOOL), Pure,
        |recv, args| Ok(Value::Bool(text(&recv)?.starts_with(args.str_at(0))));

    /// Whether it ends with this text.
    ///
    /// shoal> "hello".ends_with("lo")
    /// true
    ends_with: STR, [Param::required_as("suffix", Types::STR, "requires a suffix")], Plain(Types::BOOL), Pure,
        |recv, args| Ok(Value::Bool(text(&recv)?.ends_with(args.str_at(0))));

    /// Position of the first occurrence, or null.
    ///
    /// shoal> "grün".index_of("n")
    /// 3
    index_of: STR, [need("s", Types::STR)], Plain(Types::INT.or(Types::NULL)), Pure, |recv, args| index_of(text(&recv)?, args.str_at(0));

    /// Copies of it, one after the other.
    ///
    /// shoal> "ab".repeat(3)
    /// "ababab"
    repeat: STR, [need("n", Types::INT)], Plain(Types::STR), Nothing, |ctx, recv, args| repeat(ctx, text(&recv)?, args.count_at(0)?);

    /// Filled up at the start to at least `n` characters.
    ///
    /// shoal> "7".pad_start(3, "0")
    /// "007"
    pad_start: STR, [need("n", Types::INT), optional("s", Types::STR)], Plain(Types::STR), Pure, |recv, args| {
        let text = text(&recv)?;
        text_value(fill(text, &args)? + text)
    };

    /// Filled up at the end to at least `n` characters.
    ///
    /// shoal> "ab".pad_end(4, ".")
    /// "ab.."
    pad_end: STR, [need("n", Types::INT), optional("s", Types::STR)], Plain(Types::STR), Pure, |recv, args| {
        let text = text(&recv)?;
        text_value(text.to_owned() + &fill(text, &args)?)
    };

    /// Its first `n` characters.
    ///
    /// shoal> "hello".take(2)
    /// "he"
    take: STR, [need("n", Types::INT)], Plain(Types::STR), Pure, |recv, args| {
        let n = args.count_at(0)?;
        shortened(recv, |text| &text[..byte_at(text, n)])
    };

    /// Without its first `n` characters.
    ///
    /// shoal> "hello".skip(2)
    /// "llo"
    skip: STR, [need("n", Types::INT)], Plain(Types::STR), Pure, |recv, args| skip(recv, &args);

    /// Without its first `n` characters, like `skip`.
    ///
    /// shoal> "hello".drop(4)
    /// "o"
    drop: STR, [need("n", Types::INT)], Plain(Types::STR), Pure, |recv, args| skip(recv, &args);

    /// The characters from `a` up to `b`. Negative positions count from the end; positions outside are clamped.
    ///
    /// shoal> "hello".slice(1, -1)
    /// "ell"
    slice: STR, [need("a", Types::INT), optional("b", Types::INT)], Plain(Types::STR), Pure, |recv, args| {
        let (from, to) = slice_bounds(args.int_at(0), args.int(1), char_count(text(&recv)?));
        shortened(recv, |text| &text[byte_at(text, from)..byte_at(text, to)])
    };

    /// Its characters backwards.
    ///
    /// shoal> "abc".reverse()
    /// "cba"
    reverse: STR, [], Plain(Types::STR), Text, |text| text_value(text.chars().rev().collect());
};

/// Text of a str receiver.
pub(crate) fn text(value: &Value) -> Result<&str, ErrorValue> {
    value.as_str().ok_or_else(|| ErrorValue::type_error(format!("expected str, found {}", value.type_name())))
}

/// A text in another case. ASCII, which is most text, keeps its length and is made in one piece.
fn recased(text: &str, ascii: fn(&mut str), any: fn(&str) -> String) -> Result<Value, ErrorValue> {
    if !text.is_ascii() {
        return text_value(any(text));
    }
    let mut recased: Str = Str::from(text);
    if let Some(own) = Str::get_mut(&mut recased) {
        ascii(own);
    }
    Ok(Value::Str(recased))
}

/// A str, unless it is longer than one may be.
pub(crate) fn text_value(text: String) -> Result<Value, ErrorValue> {
    check_text(text.len())?;
    Ok(Value::str(text))
}

/// Refuses text of more than [`MAX_TEXT`] bytes.
pub(super) fn check_text(bytes: usize) -> Result<(), ErrorValue> {
    if bytes <= MAX_TEXT {
        return Ok(());
    }
    Err(ErrorValue::too_large(format!("a str of {bytes} bytes is longer than {} MiB", MAX_TEXT >> 20)))
}

/// Lines of a text: split at line feeds, each without a trailing carriage return.
pub(crate) fn lines_of(text: &str) -> List {
    List::leaves(split_lines(text))
}

/// The same, lazily.
pub(crate) fn split_lines(text: &str) -> impl Iterator<Item = &str> {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let none = text.is_empty();
    body.split('\n').filter(move |_| !none).map(|line| line.strip_suffix('\r').unwrap_or(line))
}

/// `from..to` of a slice: negative positions count from the end, and both are clamped to `len` and ordered.
pub(super) fn slice_bounds(a: i64, b: Option<i64>, len: usize) -> (usize, usize) {
    let place = |at: i64| {
        let distance = usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX);
        if at < 0 { len.saturating_sub(distance) } else { distance.min(len) }
    };
    let (from, to) = (place(a), b.map_or(len, place));
    (from, to.max(from))
}

fn length(text: &str) -> Result<Value, ErrorValue> {
    Ok(Value::Int(count_value(char_count(text))))
}

/// A length as an int.
pub(crate) fn count_value(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn char_count(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// Byte position of character `n`, or the end.
fn byte_at(text: &str, n: usize) -> usize {
    if text.is_ascii() {
        return n.min(text.len());
    }
    text.char_indices().nth(n).map_or(text.len(), |(at, _)| at)
}

/// A part of the receiver; the receiver itself if that is all of it.
fn shortened(recv: Value, part: impl FnOnce(&str) -> &str) -> Result<Value, ErrorValue> {
    let text = text(&recv)?;
    let part = part(text);
    if part.len() == text.len() {
        return Ok(recv);
    }
    Ok(Value::Str(Str::from(part)))
}

fn skip(recv: Value, args: &Args) -> Result<Value, ErrorValue> {
    let n = args.count_at(0)?;
    shortened(recv, |text| &text[byte_at(text, n)..])
}

fn index_of(text: &str, part: &str) -> Result<Value, ErrorValue> {
    Ok(text.find(part).map_or(Value::Null, |at| Value::Int(count_value(char_count(&text[..at])))))
}

fn repeat(ctx: &Ctx<'_>, text: &str, n: usize) -> Eval<Value> {
    let bytes = text.len().saturating_mul(n);
    check_text(bytes)?;
    ctx.alloc(bytes as u64)?;
    Ok(Value::str(text.repeat(n)))
}

/// What `pad_start` and `pad_end` put beside `text`.
fn fill(text: &str, args: &Args) -> Result<String, ErrorValue> {
    let (width, pad) = (args.count_at(0)?, args.text(1).map(|t| &**t).unwrap_or(" "));
    let lacking = width.saturating_sub(char_count(text));
    if lacking == 0 {
        return Ok(String::new());
    }
    if pad.is_empty() {
        return Err(ErrorValue::arg_error("the padding is empty").with_hint("give at least one character to pad with"));
    }
    check_text(lacking.saturating_add(text.len()))?;
    let padding: String = pad.chars().cycle().take(lacking).collect();
    check_text(padding.len().saturating_add(text.len()))?;
    Ok(padding)
}
