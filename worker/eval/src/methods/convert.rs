//! Conversions a program asks for by name.

use shoal_value::{DateTime, Value, convert};

use super::bytes::resident;
use super::rows::methods;
use super::text::text;
use crate::registry::{Method, Types};

const STR: Types = Types::STR;

/// Types whose text is asked for with `.str()`, also where the answer is an error. The others forward to what they hold.
const SHOWN: Types =
    Types::ANY.but(Types::OUTCOME).but(Types::STREAM).but(Types::GLOB).but(Types::TASK).but(Types::CHANNEL);

pub(super) const METHODS: &[Method] = methods! {
    /// The text of a str, path, bytes, int, float or bool. What is not UTF-8 is `utf8_error`; other types have an inline
    /// form instead, which interpolation gives: `"{x}"`.
    ///
    /// shoal> 5.str()
    /// "5"
    /// shoal> path("a.txt").str()
    /// "a.txt"
    /// shoal> [1].str()
    /// ! type_error
    str: SHOWN, [], Plain(Types::STR), Nothing, |ctx, recv, _| Ok(Value::Str(convert::to_str(&resident(ctx, recv)?)?));

    /// The text for people: like `str`, with what is not UTF-8 replaced.
    ///
    /// shoal> true.display()
    /// "true"
    display: SHOWN, [], Plain(Types::STR), Nothing, |ctx, recv, _| Ok(Value::Str(convert::display(&resident(ctx, recv)?)?));

    /// An int: the whole part of a float, the number a text is, a size in bytes.
    ///
    /// shoal> 3.9.int()
    /// 3
    /// shoal> 2kb.int()
    /// 2000
    int: Types::NUMBER.or(STR).or(Types::SIZE), [], Plain(Types::INT), Pure, |recv, _| Ok(Value::Int(convert::to_int(&recv)?));

    /// A float, also of an int or of the number a text is.
    ///
    /// shoal> "2.5".float() * 2
    /// 5
    float: Types::NUMBER.or(STR), [], Plain(Types::FLOAT), Pure, |recv, _| Ok(Value::Float(convert::to_float(&recv)?));

    /// The int that a text is, exactly: no spaces, no underscores.
    ///
    /// shoal> "42".parse_int()
    /// 42
    /// shoal> "42x".parse_int()
    /// ! arg_error
    parse_int: STR, [], Plain(Types::INT), Pure, |recv, _| Ok(Value::Int(convert::parse_int(text(&recv)?)?));

    /// The float that a text is, exactly.
    ///
    /// shoal> "3.5".parse_float()
    /// 3.5
    parse_float: STR, [], Plain(Types::FLOAT), Pure, |recv, _| Ok(Value::Float(convert::parse_float(text(&recv)?)?));

    /// The size that a text is: a number and a unit, in any case.
    ///
    /// shoal> "1.5MB".parse_size()
    /// 1.5mb
    parse_size: STR, [], Plain(Types::SIZE), Pure, |recv, _| Ok(Value::Size(convert::parse_size(text(&recv)?)?));

    /// The duration that a text is; a bare int is seconds.
    ///
    /// shoal> "1m30s".parse_duration()
    /// 1m30s
    parse_duration: STR, [], Plain(Types::DURATION), Pure,
        |recv, _| Ok(Value::Duration(convert::parse_duration(text(&recv)?)?));

    /// The datetime that a text is. A date alone is midnight UTC; a date and time without a zone is in the local zone.
    ///
    /// shoal> "2026-07-09".parse_datetime()
    /// 2026-07-09T00:00:00Z
    parse_datetime: STR, [], Plain(Types::DATETIME), Nothing, |ctx, recv, _| {
        Ok(DateTime::parse(text(&recv)?, &ctx.clock().zone())?.into())
    };
};
