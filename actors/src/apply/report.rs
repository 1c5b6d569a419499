//! What the apply task tells its flow, and how it ends.

use trellara_storage::Error;
use trellara_storage::records::QuarantineRecord;

use crate::failure::{Code, Failure};
use crate::ports::Checkpoint;

/// Reported while the task runs.
#[derive(Clone, Debug)]
pub enum ApplyReport {
    /// The checkpoint is ours; `None` before the flow's first.
    Claimed(Checkpoint),
    Progress(ApplyProgress),
    /// A failed attempt that will be tried again inside the task.
    Retrying(Failure),
    /// A parked transaction was applied, or passed by a recorded decision.
    Resolved(Box<QuarantineRecord>),
}

/// Counters since the task started, and where the target stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApplyProgress {
    pub applied: trellara_storage::Progress,
    pub transactions: u64,
    pub changes: u64,
    /// Commit time at the source of the newest applied transaction.
    pub commit_time: trellara_storage::Timestamp,
    pub at: trellara_storage::Timestamp,
}

/// Why the task ended.
#[derive(Debug)]
pub enum ApplyExit {
    Stopped,
    /// Evidence and state are durable already (I7).
    Quarantined(Box<QuarantineRecord>),
    Failed(Failure),
    Fenced(Box<Checkpoint>),
    LineageLost {
        code: Code,
        what: String,
    },
    Store(Error),
}
