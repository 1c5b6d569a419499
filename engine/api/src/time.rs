//! A moment, as RFC 3339 text in JSON.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::time::OffsetDateTime;
use ::time::format_description::well_known::Rfc3339;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Microseconds since 1970-01-01 00:00 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    pub const fn from_unix_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn unix_micros(self) -> i64 {
        self.0
    }

    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    /// Time from `earlier` to here, zero when `earlier` lies ahead (clocks differ between machines).
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    fn date(self) -> Option<OffsetDateTime> {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000).ok()
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.date().and_then(|date| date.format(&Rfc3339).ok()) {
            Some(text) => f.write_str(&text),
            None => write!(f, "{} us", self.0),
        }
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let date = OffsetDateTime::parse(&text, &Rfc3339).map_err(de::Error::custom)?;
        i64::try_from(date.unix_timestamp_nanos() / 1_000).map(Self).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;

    #[test]
    fn a_time_travels_as_rfc_3339_and_comes_back_exactly() {
        let time = Time::from_unix_micros(1_764_590_400_123_456);
        let text = serde_json::to_string(&time).unwrap();
        assert_eq!(text, r#""2025-12-01T12:00:00.123456Z""#);
        assert_eq!(serde_json::from_str::<Time>(&text).unwrap(), time);
    }
}
