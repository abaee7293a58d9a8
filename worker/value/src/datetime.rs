//! Instants with a zone, and times of day.

use std::ops::Deref;
use std::sync::Arc;

use jiff::ZonedDateTime;

/// An instant with a zone. Cloning shares it.
#[derive(Clone, Debug)]
pub struct DateTime(Arc<ZonedDateTime>);

impl DateTime {
    /// The instant in UTC.
    pub fn utc(&self) -> jiff::Timestamp {
        self.0.timestamp()
    }
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
}
