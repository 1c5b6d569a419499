//! The parts of a flow in the `flows` family. One writer per part, so that nothing is read, modified and
//! written back by two.

use serde::{Deserialize, Serialize};

use crate::{CaptureSession, FlowName, Incarnation, Lsn, Progress, Timestamp};

/// Which part of a flow a key names. The numbers are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum FlowPart {
    Identity = 1,
    Lineage = 2,
    Durable = 3,
    Applied = 4,
    Floor = 5,
    Phase = 6,
}

/// Who the flow is. A removed flow keeps this part as its tombstone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowIdentity {
    pub name: FlowName,
    pub created: Timestamp,
    pub removed: Option<Timestamp>,
    /// Digest of the specification that the flow last ran with, hexadecimal.
    pub spec_digest: String,
}

/// How the flow's content began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartMode {
    /// Every table of the dataset was empty at the slot's creation: the stream is the whole content.
    Empty,
    /// The operator said that content before the start is not this flow's business.
    FromNow,
    /// This engine had no record; the target's checkpoint covered the slot's position.
    Adopted,
}

/// One publication as the source's catalog showed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicationIdentity {
    pub name: String,
    pub oid: u32,
    /// Hexadecimal digest over tables, column lists, filters, operations and via-root.
    pub digest: String,
}

/// What ties positions to a source (I8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage {
    pub incarnation: Incarnation,
    pub system_identifier: u64,
    /// Timeline on which the durable position was received.
    pub timeline: u32,
    pub slot: String,
    pub publications: Vec<PublicationIdentity>,
    /// The slot's consistent point: the first position that this incarnation covers.
    pub start: Lsn,
    pub start_mode: StartMode,
    pub started: Timestamp,
}

/// Bytes appended to and pruned from the flow's log, so that the used budget is known without a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedBytes {
    pub bytes: u64,
    pub transactions: u64,
}

impl LoggedBytes {
    #[must_use]
    pub fn plus(self, other: LoggedBytes) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            transactions: self.transactions.saturating_add(other.transactions),
        }
    }

    #[must_use]
    pub fn minus(self, other: LoggedBytes) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(other.bytes),
            transactions: self.transactions.saturating_sub(other.transactions),
        }
    }
}

/// The durable part; capture is its writer. Reads as a `Progress` where only the positions matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Durable {
    #[serde(flatten)]
    pub progress: Progress,
    /// Log values and chunk parts of committed transactions, summed over the `bytes` of their dedup records.
    pub appended: LoggedBytes,
    /// The newest connection of capture; parts in progress of earlier ones are swept.
    pub session: CaptureSession,
}

/// Why the floor moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PruneRule {
    RetainApplied,
    Released,
    FlowRemoved,
}

/// Everything below was pruned, by which rule and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Floor {
    pub incarnation: Incarnation,
    pub pruned_below: Lsn,
    pub rule: PruneRule,
    pub at: Timestamp,
    pub pruned: LoggedBytes,
}
