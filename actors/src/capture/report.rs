//! What the capture task tells its flow, and how it ends.

use trellara_storage::records::Lineage;
use trellara_storage::{Error, Progress, Timestamp};

use crate::failure::{Code, Failure};

/// Reported while the task runs; each replaces the one before of its kind.
#[derive(Clone, Debug)]
pub enum CaptureReport {
    /// The incarnation began, was adopted, or goes on.
    Lineage {
        lineage: Lineage,
        adopted: bool,
    },
    Capturing,
    /// Publications whose definition is another than at the last connect: rows that it no longer covers, or
    /// did not cover before, are not reconciled by the stream.
    PublicationsChanged(Vec<String>),
    Progress(CaptureProgress),
}

/// Positions and counters of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureProgress {
    pub captured: Progress,
    pub durable: Progress,
    /// Transactions and body bytes made durable since the task started.
    pub transactions: u64,
    pub bytes: u64,
    /// Transactions that were received before and dropped.
    pub redelivered: u64,
    pub source_seen: Timestamp,
    /// Commit time of the newest heartbeat that came back through the stream.
    pub heartbeat: Option<Timestamp>,
}

/// Why the task ended.
#[derive(Debug)]
pub enum CaptureExit {
    /// It was told to stop, and has closed its connection.
    Stopped,
    Failed(Failure),
    /// A gap that cannot be disproved (I8): terminal for this incarnation. `what` is for people.
    LineageLost {
        code: Code,
        what: String,
    },
    /// The flow's log budget is used up; the connection is closed.
    LogFull,
    Store(Error),
}

impl From<Failure> for CaptureExit {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Error> for CaptureExit {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}
