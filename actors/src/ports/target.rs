//! The target as apply sees it: a fenced checkpoint row, and groups of whole transactions applied in one
//! target transaction with it (I3, I11).

use std::future::Future;
use std::sync::Arc;

use trellara_storage::families::log::LoggedTransaction;
use trellara_storage::records::Outcome;
use trellara_storage::{Incarnation, InstanceId, Progress, TransactionDigest};

use crate::failure::Failure;

/// Who may apply a flow: an engine instance in one of its boots, with a number that grows per flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    pub instance: InstanceId,
    /// Drawn anew at each start of the engine process.
    pub boot: u64,
    /// Grows with every claim of the flow, across instances.
    pub generation: u64,
}

/// The flow's row in `trellara.checkpoint` at the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub incarnation: Incarnation,
    /// `system identifier / slot` of the source that the positions belong to.
    pub lineage: String,
    pub applied: Progress,
    /// Digest of the transaction at `applied.commit_lsn`; none before the first.
    pub digest: Option<TransactionDigest>,
    pub token: Token,
    /// The holder's configured name and host, for people.
    pub holder: String,
    /// The lease has not run out, by the target's clock.
    pub lease_live: bool,
}

/// What a claim asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub instance: InstanceId,
    pub boot: u64,
    pub holder: String,
    /// Claim although another instance's lease is live (`flow restart --take-over`).
    pub take_over: bool,
    /// Written when there is no row yet and this is the flow's first claim; none where a missing row means
    /// that the target was lost.
    pub initial: Option<InitialCheckpoint>,
}

/// The first checkpoint of an incarnation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitialCheckpoint {
    pub incarnation: Incarnation,
    pub lineage: String,
    pub applied: Progress,
}

/// How a claim ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The row is ours; `checkpoint.token` is the new token.
    Ours(Checkpoint),
    /// Another instance holds a live lease.
    Held(Checkpoint),
    /// There is no row, and none was to be written.
    Missing,
}

/// One whole transaction of a group.
#[derive(Clone, Debug)]
pub struct Member {
    pub transaction: Arc<LoggedTransaction>,
    /// Not applied but recorded: a discarded transaction moves the checkpoint and leaves this outcome.
    pub instead: Option<Outcome>,
}

/// Whole transactions in commit order, to be applied in one target transaction.
#[derive(Clone, Debug)]
pub struct Group {
    /// Where the checkpoint must stand for this group to apply.
    pub from: Progress,
    pub members: Vec<Member>,
    /// Where the checkpoint stands afterwards.
    pub to: Progress,
}

/// How a group is to be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applying {
    /// Runs of like changes as set-based statements. A row failure of this form classifies nothing.
    SetBased,
    /// Every change by itself, in source order: what counts.
    ChangeByChange,
    /// As `ChangeByChange`, rolled back at the end: would it apply now?
    Check,
}

/// How applying a group ended.
#[derive(Clone, Debug)]
pub enum ApplyOutcome {
    /// Committed, checkpoint included (for `Check`: would have).
    Applied,
    /// The first statement did not find the row with our token and position; nothing was done. The row as
    /// it stands now, none when it is gone.
    NotThere(Option<Checkpoint>),
    /// Rolled back for certain. `member` is the index of the transaction that failed, where one did.
    Failed { member: Option<usize>, failure: Failure },
    /// COMMIT was sent and no answer came: only the checkpoint can tell (I4).
    InDoubt(Failure),
}

/// One flow's target.
pub trait TargetPort: Send + Sync + 'static {
    type Session: TargetSession;

    /// Connects, or leases a connection of the pool, with the pinned session settings.
    fn connect(&self) -> impl Future<Output = Result<Self::Session, Failure>> + Send;
}

/// A leased connection to the flow's target.
pub trait TargetSession: Send + 'static {
    fn claim(&mut self, claim: &Claim) -> impl Future<Output = Result<Claimed, Failure>> + Send;

    fn checkpoint(&mut self) -> impl Future<Output = Result<Option<Checkpoint>, Failure>> + Send;

    fn apply(
        &mut self,
        token: Token,
        group: &Group,
        how: Applying,
    ) -> impl Future<Output = ApplyOutcome> + Send;
}
