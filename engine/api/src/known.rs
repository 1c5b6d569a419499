//! A value that one side may be unable to give: status is partial, never an error for the whole.

use serde::{Deserialize, Serialize};

/// The value itself in JSON, or `{"unknown": "why"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Known<T> {
    Value(T),
    Unknown { unknown: String },
}

impl<T> Known<T> {
    /// `why` completes "unknown: ...".
    pub fn unknown(why: impl Into<String>) -> Self {
        Known::Unknown { unknown: why.into() }
    }

    pub fn value(&self) -> Option<&T> {
        match self {
            Known::Value(value) => Some(value),
            Known::Unknown { .. } => None,
        }
    }

    pub fn is_unknown(&self) -> bool {
        matches!(self, Known::Unknown { .. })
    }

    /// The value, or unknown for this reason where there is none.
    pub fn from_option(value: Option<T>, why: &str) -> Self {
        value.map_or_else(|| Known::unknown(why), Known::Value)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;

    #[test]
    fn a_value_is_plain_json_and_an_unknown_one_says_why() {
        let value: Known<u64> = serde_json::from_str("12").unwrap();
        assert_eq!(value, Known::Value(12));
        let unknown: Known<u64> = serde_json::from_str(r#"{"unknown": "source is down"}"#).unwrap();
        assert_eq!(unknown, Known::unknown("source is down"));
        assert_eq!(serde_json::to_string(&unknown).unwrap(), r#"{"unknown":"source is down"}"#);
    }
}
