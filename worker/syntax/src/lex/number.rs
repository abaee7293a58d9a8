//! Numbers, sizes, durations and times of day.

use crate::Diag;
use crate::parser::Reject;

/// A numeric literal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Int(i64),
    Float(f64),
    /// Bytes.
    Size(u64),
    /// Nanoseconds.
    Duration(i64),
    /// Hour, minute, second.
    Time(u8, u8, u8),
}

const SIZES: &[(&str, u64)] = &[
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

/// Largest first, so that an index tells whether units descend.
const DURATIONS: &[(&str, u64)] = &[
    ("w", 604_800_000_000_000),
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Reads the literal whose first digit is at `at`; gives its end.
pub(crate) fn read(src: &str, at: usize) -> Result<(Number, usize), Reject> {
    if let Some(time) = time_of_day(src, at) {
        return time;
    }
    if let Some(int) = radix_int(src, at) {
        return int;
    }
    let digits = decimal(src, at);
    let unit_end = letters_end(src, digits.end);
    if unit_end == digits.end {
        return plain(src, at, digits);
    }
    let unit = &src[digits.end..unit_end];
    let ends_here = !src.as_bytes().get(unit_end).is_some_and(|&b| b.is_ascii_digit() || b == b'_');
    if let Some((_, factor)) = SIZES.iter().find(|(name, _)| *name == unit && ends_here) {
        let bytes = scaled(&src[at..digits.end], digits.float, *factor);
        return match u64::try_from(bytes) {
            Ok(bytes) => Ok((Number::Size(bytes), unit_end)),
            Err(_) => Err(out_of_range(at, unit_end, "a size is at most 18446744073709551615 bytes")),
        };
    }
    duration(src, at)
}

/// A run of digits with an optional fraction and exponent.
#[derive(Clone, Copy)]
struct Decimal {
    end: usize,
    float: bool,
}

fn decimal(src: &str, at: usize) -> Decimal {
    let bytes = src.as_bytes();
    let digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
    let run = |mut i: usize| {
        while bytes.get(i).is_some_and(|&b| b.is_ascii_digit() || b == b'_') {
            i += 1;
        }
        i
    };
    let mut end = run(at);
    let mut float = false;
    if bytes.get(end) == Some(&b'.') && digit(end + 1) {
        end = run(end + 1);
        float = true;
    }
    if bytes.get(end) == Some(&b'e') {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if digit(end + 1 + sign) {
            end = run(end + 1 + sign);
            float = true;
        }
    }
    Decimal { end, float }
}

fn plain(src: &str, at: usize, digits: Decimal) -> Result<(Number, usize), Reject> {
    let text = src[at..digits.end].replace('_', "");
    if digits.float {
        let value: f64 = text.parse().unwrap_or(f64::INFINITY);
        if value.is_infinite() {
            return Err(out_of_range(at, digits.end, "a float is at most about 1.8e308"));
        }
        return Ok((Number::Float(value), digits.end));
    }
    match text.parse() {
        Ok(value) => Ok((Number::Int(value), digits.end)),
        Err(_) => Err(out_of_range(at, digits.end, "an int is at most 9223372036854775807")),
    }
}

fn radix_int(src: &str, at: usize) -> Option<Result<(Number, usize), Reject>> {
    let bytes = src.as_bytes();
    if bytes[at] != b'0' {
        return None;
    }
    let radix = match bytes.get(at + 1)? {
        b'x' | b'X' => 16,
        b'o' | b'O' => 8,
        b'b' | b'B' => 2,
        _ => return None,
    };
    let is_digit = |b: u8| char::from(b).is_digit(radix);
    if !bytes.get(at + 2).is_some_and(|&b| is_digit(b)) {
        return None;
    }
    let mut end = at + 2;
    while bytes.get(end).is_some_and(|&b| is_digit(b) || b == b'_') {
        end += 1;
    }
    if bytes.get(end).is_some_and(u8::is_ascii_alphanumeric) {
        let stray = char::from(bytes[end]);
        let diag = Diag::new(at..end + 1, format!("`{stray}` is no digit of a base {radix} number"));
        return Some(Err(diag.hint("numbers with a prefix have no unit").into()));
    }
    let digits = src[at + 2..end].replace('_', "");
    Some(match i64::from_str_radix(&digits, radix) {
        Ok(value) => Ok((Number::Int(value), end)),
        Err(_) => Err(out_of_range(at, end, "an int is at most 0x7fffffffffffffff")),
    })
}

fn time_of_day(src: &str, at: usize) -> Option<Result<(Number, usize), Reject>> {
    let bytes = src.as_bytes();
    let digits = |i: usize| bytes[i.min(bytes.len())..].iter().take_while(|b| b.is_ascii_digit()).count();
    let hour_len = digits(at);
    if !(1..=2).contains(&hour_len) || bytes.get(at + hour_len) != Some(&b':') || digits(at + hour_len + 1) != 2 {
        return None;
    }
    let minute_at = at + hour_len + 1;
    let mut end = minute_at + 2;
    let mut second = 0;
    if bytes.get(end) == Some(&b':') && digits(end + 1) == 2 {
        second = src[end + 1..end + 3].parse().ok()?;
        end += 3;
    }
    let suffix_end = end + bytes[end..].iter().take_while(|&&b| super::is_ident(b)).count();
    let afternoon = match src[end..suffix_end].to_ascii_lowercase().as_str() {
        "" => None,
        "am" => Some(false),
        "pm" => Some(true),
        _ => return None,
    };
    let hour: u8 = src[at..at + hour_len].parse().ok()?;
    let minute: u8 = src[minute_at..minute_at + 2].parse().ok()?;
    let hours = if afternoon.is_some() { 1..=12 } else { 0..=23 };
    if !hours.contains(&hour) || minute > 59 || second > 59 {
        let valid = "a time of day is 0:00 to 23:59:59, or 1:00 to 12:59:59 with am or pm";
        return Some(Err(out_of_range(at, suffix_end, valid)));
    }
    let hour = match afternoon {
        None => hour,
        Some(false) => hour % 12,
        Some(true) => hour % 12 + 12,
    };
    Some(Ok((Number::Time(hour, minute, second), suffix_end)))
}

fn duration(src: &str, at: usize) -> Result<(Number, usize), Reject> {
    let mut total: i128 = 0;
    let mut previous = None;
    let mut start = at;
    loop {
        let digits = decimal(src, start);
        let end = letters_end(src, digits.end);
        let unit = &src[digits.end..end];
        let Some(rank) = DURATIONS.iter().position(|(name, _)| *name == unit) else {
            return Err(unknown_unit(src, digits.end));
        };
        if previous.is_some_and(|previous| previous >= rank) {
            return Err(Diag::new(at..end, "units of a duration go from large to small, each once")
                .hint("for example `1h30m`")
                .into());
        }
        total = total.saturating_add(scaled(&src[start..digits.end], digits.float, DURATIONS[rank].1));
        previous = Some(rank);
        match src.as_bytes().get(end) {
            Some(byte) if byte.is_ascii_digit() && digits.float => {
                return Err(Diag::new(at..end, "only the last part of a duration may have a fraction").into());
            }
            Some(byte) if byte.is_ascii_digit() => start = end,
            Some(b'_') => return Err(unknown_unit(src, digits.end)),
            _ => {
                return match i64::try_from(total) {
                    Ok(nanos) => Ok((Number::Duration(nanos), end)),
                    Err(_) => Err(out_of_range(at, end, "a duration is at most about 292 years")),
                };
            }
        }
    }
}

/// `text * factor`, rounded; values beyond every unit's range saturate.
fn scaled(text: &str, float: bool, factor: u64) -> i128 {
    let text = text.replace('_', "");
    if float {
        // Far below 2^127 the float is exact enough for a rounded unit; above, the cast saturates and is out of range.
        let value: f64 = text.parse().unwrap_or(f64::INFINITY);
        return (value * factor as f64).round() as i128;
    }
    text.parse::<i128>().unwrap_or(i128::MAX).saturating_mul(i128::from(factor))
}

fn letters_end(src: &str, at: usize) -> usize {
    at + src.as_bytes()[at..].iter().take_while(|b| b.is_ascii_alphabetic()).count()
}

fn unknown_unit(src: &str, at: usize) -> Reject {
    let end = at + src.as_bytes()[at..].iter().take_while(|&&b| super::is_ident(b)).count();
    let what = match &src[at..end] {
        "" => "unknown unit: every part of a duration has one".to_owned(),
        unit => format!("unknown unit `{unit}`"),
    };
    Diag::new(at..end, what)
        .hint("sizes: b kb mb gb tb kib mib gib tib; durations: ns us ms s m h d w; all in lower case")
        .into()
}

fn out_of_range(at: usize, end: usize, hint: &str) -> Reject {
    Diag::new(at..end, "literal out of range").hint(hint).into()
}

#[cfg(test)]
mod tests {
    use super::Number::*;
    use super::*;

    #[track_caller]
    fn check(src: &str, number: Number, rest: &str) {
        let (read, end) = read(src, 0).map_err(|reject| reject.diag).unwrap();
        assert_eq!((read, &src[end..]), (number, rest), "{src}");
    }

    #[track_caller]
    fn fails(src: &str, text: &str) {
        let diag = read(src, 0).map_err(|reject| reject.diag).unwrap_err();
        assert!(diag.message().contains(text), "{src}: {diag}");
    }

    #[test]
    fn ints_and_floats() {
        check("1_000", Int(1000), "");
        check("08", Int(8), "");
        check("0xFF", Int(255), "");
        check("0o17", Int(15), "");
        check("0B1_0", Int(2), "");
        check("1.5", Float(1.5), "");
        check("1e9", Float(1e9), "");
        check("2.5e-1", Float(0.25), "");
        check("1..5", Int(1), "..5");
        check("7.str()", Int(7), ".str()");
        check("5.", Int(5), ".");
        check("9223372036854775807", Int(i64::MAX), "");
        fails("9223372036854775808", "out of range");
        fails("0xFFFFFFFFFFFFFFFF", "out of range");
        fails("1e999", "out of range");
    }

    #[test]
    fn sizes() {
        check("5kb", Size(5_000), "");
        check("1.5kib", Size(1536), "");
        check("0b", Size(0), "");
        check("18446744073709551615b", Size(u64::MAX), "");
        fails("18446744073709551616b", "out of range");
        fails("99999999tb", "out of range");
        fails("5KB", "unknown unit");
        fails("5kb3", "unknown unit");
        fails("5xyz", "unknown unit");
        fails("0b12", "no digit");
    }

    #[test]
    fn durations() {
        check("90s", Duration(90_000_000_000), "");
        check("1h30m", Duration(5_400_000_000_000), "");
        check("1s500ms", Duration(1_500_000_000), "");
        check("1.5h", Duration(5_400_000_000_000), "");
        check("5m.seconds", Duration(300_000_000_000), ".seconds");
        fails("99999999999w", "out of range");
        fails("1m1h", "large to small");
        fails("1.5h1m", "last part");
        fails("1h30", "unknown unit");
    }

    #[test]
    fn times() {
        check("10:30", Time(10, 30, 0), "");
        check("10:30:15pm", Time(22, 30, 15), "");
        check("12:00AM", Time(0, 0, 0), "");
        check("10:305", Int(10), ":305");
        check("100:30", Int(100), ":30");
        check("10:30x", Int(10), ":30x");
        fails("10:99", "out of range");
        fails("24:00", "out of range");
        fails("13:00pm", "out of range");
    }
}
