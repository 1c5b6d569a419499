//! What the capture and apply tasks of one flow know of each other.

use tokio::sync::watch;
use trellara_storage::records::Lineage;
use trellara_storage::{Lsn, Progress, Xid};

use crate::ports::Checkpoint;

/// The target as apply last saw it.
#[derive(Clone, Debug, Default)]
pub struct TargetView {
    /// Whether the checkpoint was read since the flow started; until then `checkpoint` says nothing.
    pub read: bool,
    pub checkpoint: Option<Checkpoint>,
    /// False from a failed connection until the next answer. A keepalive position is confirmed without
    /// waiting for the target only while this is false.
    pub answering: bool,
}

/// Where the source's decoding failed, and how often in a row it did there. Kept across connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stumble {
    /// None for a streamed transaction, whose commit is not known yet.
    pub commit_lsn: Option<Lsn>,
    pub xid: Xid,
    pub times: u32,
}

/// Shared by the tasks of one flow. Capture writes `lineage`, `durable` and `restart`, apply writes `target`; each
/// waits on the other's.
#[derive(Clone, Debug)]
pub struct FlowLink {
    /// None until an incarnation is durable here.
    pub lineage: watch::Sender<Option<Lineage>>,
    pub durable: watch::Sender<Progress>,
    pub target: watch::Sender<TargetView>,
    /// The slot's `restart_lsn` as capture last read it.
    pub restart: watch::Sender<Option<Lsn>>,
    /// Capture's own memory.
    pub stumble: watch::Sender<Option<Stumble>>,
}

impl FlowLink {
    /// From durable state, before either task runs.
    pub fn new(lineage: Option<Lineage>, durable: Progress) -> Self {
        Self {
            lineage: watch::Sender::new(lineage),
            durable: watch::Sender::new(durable),
            target: watch::Sender::new(TargetView::default()),
            restart: watch::Sender::new(None),
            stumble: watch::Sender::new(None),
        }
    }
}
