//! Text of numbers, sizes and durations, in both directions.

/// Units of a size and their bytes. Rendering uses the decimal ones, in this order.
const SIZE_UNITS: [(&str, u64); 9] = [
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

/// Units of a duration and their nanoseconds, descending.
const DURATION_UNITS: [(&str, u64); 8] = [
    ("w", 604_800_000_000_000),
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Why text is no number with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitError {
    /// It does not have the form.
    Malformed,
    /// It has the form, and the amount does not fit the type.
    OutOfRange,
}

/// Shortest decimal that reads back; no exponent, no `.0`; `inf`, `-inf`, `nan`.
pub fn format_float(f: f64) -> String {
    if f.is_nan() { "nan".to_owned() } else { f.to_string() }
}

/// `237b`, else the largest decimal unit not above the amount with at most two decimals.
pub fn format_size(bytes: u64) -> String {
    if bytes < 1_000 {
        return format!("{bytes}b");
    }
    let at = (1..5).rev().find(|at| bytes >= SIZE_UNITS[*at].1).unwrap_or(1);
    let hundredths = |unit: u64| (u128::from(bytes) * 100 + u128::from(unit) / 2) / u128::from(unit);
    let (mut name, unit) = SIZE_UNITS[at];
    let mut amount = hundredths(unit);
    if amount >= 100_000 && at < 4 {
        (name, amount) = (SIZE_UNITS[at + 1].0, 100);
    }
    let text = format!("{}.{:02}", amount / 100, amount % 100);
    format!("{}{name}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// `0s`, or the sign and the parts that are not zero: `4w2d`, `1s500ms`, `-1m30s`.
pub fn format_duration(nanos: i64) -> String {
    if nanos == 0 {
        return "0s".to_owned();
    }
    let mut text = if nanos < 0 { "-".to_owned() } else { String::new() };
    let mut rest = nanos.unsigned_abs();
    for (name, unit) in DURATION_UNITS {
        if rest >= unit {
            text.push_str(&format!("{}{name}", rest / unit));
            rest %= unit;
        }
    }
    text
}

/// A number directly followed by one unit, in any case: bytes, rounded to the nearest.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let lower = text.to_ascii_lowercase();
    let (number, name) = split_number(&lower).ok_or(UnitError::Malformed)?;
    let unit = SIZE_UNITS.iter().find(|(n, _)| *n == name).ok_or(UnitError::Malformed)?.1;
    u64::try_from(number.times(unit).ok_or(UnitError::OutOfRange)?).map_err(|_| UnitError::OutOfRange)
}

/// One or more numbers directly followed by units, in any case, units strictly descending, only the last with a fraction;
/// an optional leading `-`; a bare integer is seconds. Nanoseconds, rounded to the nearest.
pub fn parse_duration(text: &str) -> Result<i64, UnitError> {
    let lower = text.to_ascii_lowercase();
    let (negative, mut rest) = match lower.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, &*lower),
    };
    let mut units = DURATION_UNITS.iter();
    let mut total: u128 = 0;
    if !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()) {
        let seconds: u128 = rest.parse().map_err(|_| UnitError::OutOfRange)?;
        total = seconds.checked_mul(1_000_000_000).ok_or(UnitError::OutOfRange)?;
        rest = "";
    } else if rest.is_empty() {
        return Err(UnitError::Malformed);
    }
    while !rest.is_empty() {
        let (number, after) = split_number(rest).ok_or(UnitError::Malformed)?;
        let name_len = after.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (name, next) = after.split_at(name_len);
        let unit = units.find(|(n, _)| *n == name).ok_or(UnitError::Malformed)?.1;
        if number.has_fraction() && !next.is_empty() {
            return Err(UnitError::Malformed);
        }
        let part = number.times(unit).ok_or(UnitError::OutOfRange)?;
        total = total.checked_add(part).ok_or(UnitError::OutOfRange)?;
        rest = next;
    }
    let total = i128::try_from(total).map_err(|_| UnitError::OutOfRange)?;
    i64::try_from(if negative { -total } else { total }).map_err(|_| UnitError::OutOfRange)
}

/// A decimal i64 with an optional sign.
pub fn parse_int(text: &str) -> Result<i64, UnitError> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(UnitError::Malformed);
    }
    text.parse().map_err(|_| UnitError::OutOfRange)
}

/// A decimal float with an optional sign and exponent. A number too big is infinite, as in a calculation.
pub fn parse_float(text: &str) -> Result<f64, UnitError> {
    if !text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E')) {
        return Err(UnitError::Malformed);
    }
    text.parse().map_err(|_| UnitError::Malformed)
}

/// An exact decimal number: `whole.fraction`, both as digits.
struct Decimal<'a> {
    whole: &'a str,
    fraction: &'a str,
}

/// Digits of a fraction that count. More cannot change the rounding of any unit by one.
const FRACTION_DIGITS: usize = 18;

impl Decimal<'_> {
    fn has_fraction(&self) -> bool {
        !self.fraction.is_empty()
    }

    /// The product, rounded half up; none if it is beyond u128, which no type holds anyway.
    fn times(&self, unit: u64) -> Option<u128> {
        let whole = self.whole.parse::<u128>().ok()?.checked_mul(u128::from(unit))?;
        let digits = &self.fraction[..self.fraction.len().min(FRACTION_DIGITS)];
        if digits.is_empty() {
            return Some(whole);
        }
        let scale = 10u128.pow(u32::try_from(digits.len()).ok()?);
        let part = (digits.parse::<u128>().ok()? * u128::from(unit) + scale / 2) / scale;
        whole.checked_add(part)
    }
}

/// A leading `digits` or `digits.digits`, and what follows.
fn split_number(text: &str) -> Option<(Decimal<'_>, &str)> {
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = text.split_at(digits(text));
    if whole.is_empty() {
        return None;
    }
    match rest.strip_prefix('.') {
        Some(after) if digits(after) > 0 => {
            let (fraction, rest) = after.split_at(digits(after));
            Some((Decimal { whole, fraction }, rest))
        }
        Some(_) => None,
        None => Some((Decimal { whole, fraction: "" }, rest)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn floats_hide_exponent_and_point_zero() {
        let cases = [(2.0, "2"), (1e21, "1000000000000000000000"), (0.1, "0.1"), (-0.5, "-0.5"), (1e-7, "0.0000001")];
        for (float, text) in cases {
            assert_eq!(format_float(float), text);
        }
        assert_eq!(format_float(f64::INFINITY), "inf");
        assert_eq!(format_float(f64::NEG_INFINITY), "-inf");
        assert_eq!(format_float(f64::NAN), "nan");
    }

    #[test]
    fn sizes_use_the_largest_unit_and_two_decimals() {
        let cases = [
            (0, "0b"),
            (237, "237b"),
            (999, "999b"),
            (1_000, "1kb"),
            (1_024, "1.02kb"),
            (1_500, "1.5kb"),
            (999_994, "999.99kb"),
            (999_999, "1mb"),
            (999_999_999_999, "1tb"),
            (3_333, "3.33kb"),
            (u64::MAX, "18446744.07tb"),
        ];
        for (bytes, text) in cases {
            assert_eq!(format_size(bytes), text);
        }
    }

    #[test]
    fn durations_list_their_parts() {
        let day = 86_400_000_000_000;
        let cases = [
            (0, "0s"),
            (30 * day, "4w2d"),
            (1_500_000_000, "1s500ms"),
            (-90_000_000_000, "-1m30s"),
            (1, "1ns"),
            (1_001, "1us1ns"),
            (i64::MIN, "-15250w1d23h47m16s854ms775us808ns"),
        ];
        for (nanos, text) in cases {
            assert_eq!(format_duration(nanos), text);
        }
    }

    #[test]
    fn size_text_is_read_in_any_case() {
        let good = [("5KB", 5_000), ("1kib", 1_024), ("1.5kb", 1_500), ("0b", 0), ("0.4b", 0), ("0.5b", 1)];
        for (text, bytes) in good {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for bad in ["", "5", "kb", "5 kb", "1kb2b", ".5kb", "5.kb", "-5kb", "5xb", "1_000b"] {
            assert_eq!(parse_size(bad), Err(UnitError::Malformed), "{bad}");
        }
        assert_eq!(parse_size("18446744073709551616b"), Err(UnitError::OutOfRange));
        assert_eq!(parse_size("99999999999999999999999999999999999999999tb"), Err(UnitError::OutOfRange));
    }

    #[test]
    fn duration_text_is_compound_and_bare_ints_are_seconds() {
        let s = 1_000_000_000;
        let good = [("90", 90 * s), ("1m30s", 90 * s), ("1H30M", 5_400 * s), ("1.5h", 5_400 * s), ("-2s", -2 * s)];
        for (text, nanos) in good {
            assert_eq!(parse_duration(text), Ok(nanos), "{text}");
        }
        for bad in ["", "-", "1.5", "30s1m", "1s1s", "1.5m3s", "1x", "s", "1 s", "1m30"] {
            assert_eq!(parse_duration(bad), Err(UnitError::Malformed), "{bad}");
        }
        assert_eq!(parse_duration("99999999999999"), Err(UnitError::OutOfRange));
        assert_eq!(parse_duration("300000w"), Err(UnitError::OutOfRange));
    }

    #[test]
    fn numbers_are_exact_text() {
        assert_eq!(parse_int("-42"), Ok(-42));
        assert_eq!(parse_int("9223372036854775808"), Err(UnitError::OutOfRange));
        for bad in ["", "-", " 1", "1_0", "0x1", "1.0", "１"] {
            assert_eq!(parse_int(bad), Err(UnitError::Malformed), "{bad}");
        }
        assert_eq!(parse_float("1.5e3"), Ok(1_500.0));
        for bad in ["", "nan", "inf", "1_0.0", " 1.0", "1.0x", "e"] {
            assert_eq!(parse_float(bad), Err(UnitError::Malformed), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn rendered_durations_read_back(nanos: i64) {
            prop_assert_eq!(parse_duration(&format_duration(nanos)), Ok(nanos));
        }

        #[test]
        fn rendered_sizes_are_close(bytes: u64) {
            let back = parse_size(&format_size(bytes)).unwrap();
            prop_assert!(back.abs_diff(bytes) <= bytes / 100);
        }

        #[test]
        fn rendered_floats_read_back(f in proptest::num::f64::NORMAL | proptest::num::f64::ZERO) {
            prop_assert_eq!(parse_float(&format_float(f)), Ok(f));
        }
    }
}
