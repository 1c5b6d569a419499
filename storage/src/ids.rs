//! Identities: which flow, which history of it, which transaction. Newtypes, never raw integers.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Lsn;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(u32);

        impl $name {
            pub const fn new(raw: u32) -> Self {
                Self(raw)
            }

            pub const fn get(self) -> u32 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// Number of a flow in this store; never reused, a removed flow leaves a tombstone.
    FlowId
}
number! {
    /// Which history of the flow; starts at 1, LSNs compare only inside one.
    Incarnation
}
number! {
    /// Transaction id at the source, epoch dropped, as pgoutput sends it.
    Xid
}
number! {
    /// OID of a relation at the source.
    RelationId
}
number! {
    /// Version of a relation's description in this store, counted per flow, incarnation and relation.
    RelationVersion
}
number! {
    /// One connection of capture; chunk parts of other sessions without a manifest are swept.
    CaptureSession
}

impl FlowId {
    /// No flow: what belongs to the store as a whole. Flows are numbered from 1.
    pub const STORE: FlowId = FlowId(0);
}

impl Incarnation {
    pub const FIRST: Incarnation = Incarnation(1);

    /// The incarnation after this one.
    ///
    /// # Panics
    /// Never in practice: four thousand million reseeds of one flow.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.checked_add(1).expect("a flow is reseeded fewer than 2^32 times"))
    }
}

macro_rules! digest {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 16]);

        impl $name {
            pub const fn new(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            pub const fn bytes(&self) -> &[u8; 16] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidDigest;

            fn from_str(text: &str) -> Result<Self, InvalidDigest> {
                parse_hex(text).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

digest! {
    /// xxh3-128 over identity and surviving changes of a transaction, in order, each with its relation digest.
    TransactionDigest
}
digest! {
    /// xxh3-128 over a relation's name, columns, types and replica identity.
    RelationDigest
}
digest! {
    /// The engine instance: made once with the store, kept in `data_dir`, not the configured name.
    InstanceId
}

/// The text is not exactly 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected 32 hexadecimal digits")]
pub struct InvalidDigest;

fn parse_hex(text: &str) -> Result<[u8; 16], InvalidDigest> {
    if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(InvalidDigest);
    }
    u128::from_str_radix(text, 16).map(u128::to_be_bytes).map_err(|_| InvalidDigest)
}

/// Identity of one committed source transaction inside this store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TransactionId {
    pub flow: FlowId,
    pub incarnation: Incarnation,
    pub commit_lsn: Lsn,
    pub xid: Xid,
}

/// Microseconds since 1970-01-01 00:00 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const fn from_unix_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn unix_micros(self) -> i64 {
        self.0
    }

    /// Microseconds from `earlier` to here, zero when `earlier` lies ahead (clocks differ between machines).
    pub fn micros_since(self, earlier: Timestamp) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

/// A flow as people name it: `source.id:dataset.id`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowName {
    source: String,
    dataset: String,
}

/// The text is not `source:dataset` with ids of `[a-z0-9][a-z0-9_-]{0,30}`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a flow is named source:dataset, each part 1 to 31 of a-z, 0-9, _ and -, beginning with a letter or digit"
)]
pub struct InvalidFlowName;

impl FlowName {
    /// # Errors
    /// Either id is empty, longer than 31 bytes or holds a character outside `[a-z0-9_-]`.
    pub fn new(source: &str, dataset: &str) -> Result<Self, InvalidFlowName> {
        if !is_id(source) || !is_id(dataset) {
            return Err(InvalidFlowName);
        }
        Ok(Self { source: source.to_owned(), dataset: dataset.to_owned() })
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    pub fn dataset(&self) -> &str {
        &self.dataset
    }
}

fn is_id(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= 31
        && text.bytes().next().is_some_and(word)
        && text.bytes().all(|byte| word(byte) || byte == b'_' || byte == b'-')
}

impl fmt::Display for FlowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source, self.dataset)
    }
}

impl std::str::FromStr for FlowName {
    type Err = InvalidFlowName;

    fn from_str(text: &str) -> Result<Self, InvalidFlowName> {
        let (source, dataset) = text.split_once(':').ok_or(InvalidFlowName)?;
        Self::new(source, dataset)
    }
}

impl Serialize for FlowName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FlowName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
