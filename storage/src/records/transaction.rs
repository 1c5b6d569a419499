//! One committed transaction in the durable log: a header, and either its changes inline or a manifest of
//! the chunk parts that hold them. Flat on purpose: an array of fixed-size heads and one body of bytes.
//!
//! These types are archived with rkyv and are the disk format. They are never edited: a new shape is a new
//! version beside this one, chosen by the record prefix.

use rkyv::{Archive, Deserialize, Serialize};

/// What a change does. The numbers are on disk.
#[derive(Archive, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rkyv(derive(Clone, Copy, Debug, PartialEq, Eq))]
#[repr(u8)]
pub enum Operation {
    Insert = 1,
    Update = 2,
    Delete = 3,
    Truncate = 4,
    /// A logical message; `relation` and `version` are zero.
    Message = 5,
}

/// Where one change's bytes stand in the body, and what is needed to route it without reading them.
///
/// `relation` is the source's OID, `version` its description in the `relations` family, `sub_xid` the
/// (sub-)transaction that made the change, zero where the stream does not tell.
#[derive(Archive, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[rkyv(derive(Clone, Copy, Debug))]
pub struct ChangeHead {
    pub operation: Operation,
    pub relation: u32,
    pub version: u32,
    pub sub_xid: u32,
    pub offset: u32,
    pub length: u32,
}

/// Changes in source order. `body[offset..][..length]` of a head are the bytes that pgoutput sent after the
/// relation OID (for Message: after the transaction id). A Truncate is one change whose head names its first
/// relation; its body holds the option flags and every relation with its version.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeBlock {
    pub heads: Vec<ChangeHead>,
    pub body: Vec<u8>,
}

/// What is known of a transaction without its changes. Times are microseconds since 1970.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct TransactionHeader {
    pub xid: u32,
    pub commit_lsn: u64,
    pub end_lsn: u64,
    pub commit_time: i64,
    /// When the commit was received here.
    pub received: i64,
    pub digest: [u8; 16],
    /// Surviving changes, and the bytes of their bodies.
    pub changes: u64,
    pub bytes: u64,
    /// Name of the replication origin, where the source did not make the change itself.
    pub origin: Option<String>,
}

/// One part of a chunked transaction, as the manifest pins it.
#[derive(Archive, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartRef {
    /// xxh3-128 of the part's payload.
    pub hash: [u8; 16],
    pub changes: u32,
    pub bytes: u32,
}

/// Parts are numbered from 0 without gaps; `aborted` are the sub-transactions whose changes apply skips.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    pub session: u32,
    pub parts: Vec<PartRef>,
    pub aborted: Vec<u32>,
}

#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Inline(ChangeBlock),
    Chunked(Manifest),
}

/// The value of the `log` family.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct TransactionRecord {
    pub header: TransactionHeader,
    pub content: Content,
}

/// How a transaction ended, where it was not simply applied in order. The numbers are on disk.
#[derive(
    Archive, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Outcome {
    Discarded = 1,
    ReplayedInPart = 2,
    Superseded = 3,
    Released = 4,
}

/// The value of the `dedup` family.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct DedupRecord {
    pub xid: u32,
    pub digest: [u8; 16],
    pub bytes: u64,
    pub received: i64,
    /// None while it is, or will be, applied in order.
    pub outcome: Option<Outcome>,
}
