//! Instants with a zone, and times of day.

use std::ops::Deref;
use std::sync::Arc;

use jiff::fmt::temporal::{Pieces, PiecesOffset};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ZonedDateTime};

use crate::ErrorValue;

/// An instant with a zone. Cloning shares it.
#[derive(Clone, Debug)]
pub struct DateTime(Arc<ZonedDateTime>);

impl DateTime {
    /// Reads RFC 9557, RFC 3339 (also without seconds), a date alone (midnight UTC), or a date and time without a zone,
    /// which is in the zone `local`. Fails with `arg_error`.
    pub fn parse(text: &str, local: &TimeZone) -> Result<Self, ErrorValue> {
        read(text, local).map(Self::from).ok_or_else(|| {
            ErrorValue::arg_error(format!("invalid datetime \"{text}\"")).with_hint(
                "forms: 2026-07-09T14:00:00Z, 2026-07-09T14:00+02:00, 2026-07-09T14:00[Europe/Rome], 2026-07-09",
            )
        })
    }

    /// An instant given as nanoseconds since 1970 in UTC, shown in UTC; none if out of range.
    pub fn from_unix_nanos(nanos: i128) -> Option<Self> {
        Some(Timestamp::from_nanosecond(nanos).ok()?.to_zoned_datetime(TimeZone::UTC).into())
    }

    /// The instant.
    pub fn instant(&self) -> Timestamp {
        self.0.timestamp()
    }

    /// The instant in UTC: `2026-07-09T14:00:00Z`, with a fraction only if it is not zero.
    pub fn utc_text(&self) -> String {
        self.instant().to_string()
    }

    /// The full zoned text: `2026-07-09T14:00:00+00:00[UTC]`.
    pub fn zoned_text(&self) -> String {
        self.0.to_string()
    }

    /// The date in its zone: `2026-07-09`.
    pub fn date_text(&self) -> String {
        self.0.date().to_string()
    }

    /// Day of the week, 1 Monday to 7 Sunday.
    pub fn iso_weekday(&self) -> i64 {
        i64::from(self.0.weekday().to_monday_one_offset())
    }

    /// Moved by nanoseconds, in the same zone. Fails with `overflow` outside the years -9999 to 9999.
    pub fn plus_nanos(&self, nanos: i64) -> Result<Self, ErrorValue> {
        let moved = self.0.checked_add(SignedDuration::from_nanos(nanos));
        moved.map(Self::from).map_err(|_| ErrorValue::overflow("datetime out of range"))
    }

    /// Moved back by nanoseconds, in the same zone. Fails with `overflow`.
    pub fn minus_nanos(&self, nanos: i64) -> Result<Self, ErrorValue> {
        let moved = self.0.checked_sub(SignedDuration::from_nanos(nanos));
        moved.map(Self::from).map_err(|_| ErrorValue::overflow("datetime out of range"))
    }

    /// Nanoseconds from `other` to `self`. Fails with `overflow` beyond about 292 years.
    pub fn nanos_since(&self, other: &Self) -> Result<i64, ErrorValue> {
        let nanos = self.0.duration_since(&other.0).as_nanos();
        i64::try_from(nanos).map_err(|_| ErrorValue::overflow("duration overflow"))
    }

    /// Start of its day in its zone: `today`, given `now`. Fails with `overflow` at the edge of the calendar.
    pub fn start_of_day(&self) -> Result<Self, ErrorValue> {
        self.0.start_of_day().map(Self::from).map_err(|_| ErrorValue::overflow("datetime out of range"))
    }
}

fn read(text: &str, local: &TimeZone) -> Option<ZonedDateTime> {
    let bytes = text.as_bytes();
    let extended = bytes.get(4) == Some(&b'-') && bytes.iter().take(4).all(u8::is_ascii_digit);
    let timed = matches!(bytes.get(10), None | Some(b'[')) || bytes.get(13) == Some(&b':');
    if !extended || !timed {
        return None;
    }
    if text.contains('[') {
        return text.parse().ok();
    }
    let pieces = Pieces::parse(text).ok()?;
    let Some(time) = pieces.time() else {
        return pieces.date().to_zoned_datetime(TimeZone::UTC).ok();
    };
    let local_time = pieces.date().to_datetime(time);
    let zone = match pieces.offset() {
        None => local.clone(),
        Some(PiecesOffset::Zulu) => TimeZone::UTC,
        Some(offset) => TimeZone::fixed(offset.to_numeric_offset()),
    };
    local_time.to_zoned_datetime(zone).ok()
}

impl From<ZonedDateTime> for DateTime {
    fn from(zoned: ZonedDateTime) -> Self {
        Self(Arc::new(zoned))
    }
}

impl Deref for DateTime {
    type Target = ZonedDateTime;

    fn deref(&self) -> &ZonedDateTime {
        &self.0
    }
}

/// Hour, minute and second of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay {
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
}

impl TimeOfDay {
    /// The time, if all three are in range.
    pub fn new(hour: u8, minute: u8, second: u8) -> Option<Self> {
        (hour < 24 && minute < 60 && second < 60).then_some(Self { hour, minute, second })
    }

    /// Reads `9:30`, `09:30:15`, `9:30pm`, in any case. None if the form or the range is wrong.
    pub fn parse(text: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        let (clock, half) = match (lower.strip_suffix("am"), lower.strip_suffix("pm")) {
            (Some(clock), _) => (clock, Some(0)),
            (_, Some(clock)) => (clock, Some(12)),
            _ => (&*lower, None),
        };
        let mut parts = clock.split(':');
        let hour = digits(parts.next()?, 1..=2)?;
        let minute = digits(parts.next()?, 2..=2)?;
        let second = parts.next().map_or(Some(0), |part| digits(part, 2..=2))?;
        if parts.next().is_some() {
            return None;
        }
        match half {
            Some(_) if !(1..=12).contains(&hour) => None,
            Some(half) => Self::new(hour % 12 + half, minute, second),
            None => Self::new(hour, minute, second),
        }
    }

    /// `HH:MM`, with `:SS` only if the seconds are not zero.
    pub fn short_text(&self) -> String {
        let Self { hour, minute, second } = self;
        if *second == 0 { format!("{hour:02}:{minute:02}") } else { self.full_text() }
    }

    /// `HH:MM:SS`.
    pub fn full_text(&self) -> String {
        let Self { hour, minute, second } = self;
        format!("{hour:02}:{minute:02}:{second:02}")
    }
}

fn digits(text: &str, len: std::ops::RangeInclusive<usize>) -> Option<u8> {
    let fits = len.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if fits { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime {
        DateTime::parse(text, &TimeZone::fixed(jiff::tz::offset(3))).unwrap()
    }

    #[test]
    fn datetime_text_in_all_accepted_forms() {
        let cases = [
            ("2026-07-09T14:00:00Z", "2026-07-09T14:00:00+00:00[UTC]"),
            ("2026-07-09T14:00Z", "2026-07-09T14:00:00+00:00[UTC]"),
            ("2026-07-09T14:00:00.5-05:00", "2026-07-09T14:00:00.5-05:00[-05:00]"),
            ("2026-07-09T14:00+02:00[Europe/Rome]", "2026-07-09T14:00:00+02:00[Europe/Rome]"),
            ("2026-07-09", "2026-07-09T00:00:00+00:00[UTC]"),
            ("2026-07-09T14:00", "2026-07-09T14:00:00+03:00[+03:00]"),
        ];
        for (text, zoned) in cases {
            assert_eq!(at(text).zoned_text(), zoned, "{text}");
        }
    }

    #[test]
    fn other_datetime_text_is_refused() {
        for bad in [
            "",
            "now",
            "14:00",
            "2026-13-01",
            "2026-02-30",
            "20260709",
            "2026-07-09T14",
            "2026-07-09T1400Z",
            "2026-07-09T25:00Z",
            "2026-07-09T14:00[Nowhere/X]",
        ] {
            let error = DateTime::parse(bad, &TimeZone::UTC).unwrap_err();
            assert!(error.msg.contains("invalid datetime"), "{bad}");
            assert_eq!(&*error.code, "arg_error");
        }
    }

    #[test]
    fn the_zone_is_kept_by_arithmetic() {
        let later = at("2026-07-09T14:00:00-05:00").plus_nanos(3_600_000_000_000).unwrap();
        assert_eq!(later.zoned_text(), "2026-07-09T15:00:00-05:00[-05:00]");
        assert_eq!(later.utc_text(), "2026-07-09T20:00:00Z");
        assert_eq!(later.iso_weekday(), 4);
        assert_eq!(&*at("9999-12-30").plus_nanos(i64::MAX).unwrap_err().code, "overflow");
        assert_eq!(&*at("9999-12-30").nanos_since(&at("0001-01-01")).unwrap_err().code, "overflow");
    }

    #[test]
    fn times_of_day() {
        let time = |text| TimeOfDay::parse(text).map(|t| t.full_text());
        assert_eq!(time("9:30").as_deref(), Some("09:30:00"));
        assert_eq!(time("10:30:15PM").as_deref(), Some("22:30:15"));
        assert_eq!(time("12:00am").as_deref(), Some("00:00:00"));
        for bad in ["10:99", "24:00", "13:00pm", "0:30am", "1:2", "123:00", "1", "1:00:00:00", ""] {
            assert_eq!(time(bad), None, "{bad}");
        }
        assert_eq!(TimeOfDay::parse("9:05").unwrap().short_text(), "09:05");
    }
}
