//! Log sequence numbers and the pair that every progress in this system is kept as.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A position in a source's write-ahead log. Comparable only inside one incarnation of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(u64);

impl Lsn {
    /// `0/0`: before everything; as a start position it means "the slot's own".
    pub const ZERO: Lsn = Lsn(0);
    /// The largest position there can be, for range ends.
    pub const MAX: Lsn = Lsn(u64::MAX);

    pub const fn new(raw: u64) -> Self {
        Self(raw)
    }

    pub const fn get(self) -> u64 {
        self.0
    }

    /// Bytes of WAL from `earlier` to here, zero when `earlier` lies ahead.
    pub const fn bytes_since(self, earlier: Lsn) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
    }
}

/// The text is not `HEX/HEX` with at most eight digits on each side.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an LSN, write it as PostgreSQL does, for instance 0/16B3748")]
pub struct InvalidLsn;

impl FromStr for Lsn {
    type Err = InvalidLsn;

    fn from_str(text: &str) -> Result<Self, InvalidLsn> {
        let (high, low) = text.split_once('/').ok_or(InvalidLsn)?;
        let half = |digits: &str| {
            let hex =
                !digits.is_empty() && digits.len() <= 8 && digits.bytes().all(|b| b.is_ascii_hexdigit());
            hex.then(|| u64::from_str_radix(digits, 16).ok()).flatten().ok_or(InvalidLsn)
        };
        Ok(Self(half(high)? << 32 | half(low)?))
    }
}

impl Serialize for Lsn {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Lsn {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// How far something has come: durable here, or applied at the target.
///
/// `commit_lsn` orders transactions and bounds snapshots; `position` (the `end_lsn` of that transaction or
/// a later keepalive position) is what is confirmed to the slot and compared by dedup and lineage: a commit
/// LSN below `position` was received before, one at or above it is new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Progress {
    pub commit_lsn: Lsn,
    pub position: Lsn,
}

impl Progress {
    pub const ZERO: Progress = Progress { commit_lsn: Lsn::ZERO, position: Lsn::ZERO };

    /// True when a transaction with this commit LSN lies behind this progress.
    pub fn covers(self, commit_lsn: Lsn) -> bool {
        commit_lsn < self.position
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

    use super::*;

    #[test]
    fn lsn_text_round_trips() {
        for text in ["0/0", "0/16B3748", "16/B374D848", "FFFFFFFF/FFFFFFFF"] {
            assert_eq!(text.parse::<Lsn>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn text_that_is_no_lsn_is_refused() {
        for text in ["", "0", "/", "0/", "/0", "x/1", "0/123456789", "+1/2", "0x1/2"] {
            assert_eq!(text.parse::<Lsn>(), Err(InvalidLsn), "{text}");
        }
    }
}
