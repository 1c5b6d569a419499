//! What the slot sends again on a new connection, compared with what was received before (I8).
//!
//! Streaming starts at the slot's own position, so everything between it and the durable position comes once
//! more. It must be the same: a transaction that is unknown, different or left out means that the source has
//! another history, however well everything else fits (a file-level copy of it, restored).

use std::ops::ControlFlow;

use trellara_storage::codec::key::read_u64;
use trellara_storage::families::dedup;
use trellara_storage::records::{DedupRecord, Lineage, StartMode};
use trellara_storage::store::Order;
use trellara_storage::{Error, Family, FlowId, Incarnation, Lsn, Store, TransactionDigest};

/// How a transaction that was received before compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// It is the one that is here; drop it.
    Same,
    Another(String),
}

/// How far the comparison has come on this connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Redelivery {
    flow: FlowId,
    incarnation: Incarnation,
    /// Everything received at or above this commit LSN is still to be sent again.
    next: Lsn,
    /// The durable position at the start; none when the comparison is complete.
    until: Option<Lsn>,
    /// Below this position, adopted from the target's checkpoint, nothing is known but its last transaction.
    adopted: Lsn,
}

/// The question to the store, carried to a reader thread.
pub(super) type Expected = Result<Option<(Lsn, DedupRecord)>, Error>;

impl Redelivery {
    pub(super) fn new(flow: FlowId, lineage: &Lineage, confirmed: Lsn, durable: Lsn) -> Self {
        let adopted = match lineage.start_mode {
            StartMode::Adopted => lineage.start,
            StartMode::Empty | StartMode::FromNow => Lsn::ZERO,
        };
        let until = Some(durable);
        Self { flow, incarnation: lineage.incarnation, next: confirmed, until, adopted }
    }

    /// Reads the first transaction that must come no later than the one at `commit_lsn`.
    pub(super) fn expected_to(&self, commit_lsn: Lsn) -> impl FnOnce(&dyn Store) -> Expected + use<> {
        let (flow, incarnation) = (self.flow, self.incarnation);
        let (from, to) = (self.next.min(commit_lsn), Lsn::new(commit_lsn.get().saturating_add(1)));
        move |store| first_received(store, flow, incarnation, from, to)
    }

    /// Compares the transaction at `commit_lsn` with what `expected_to` found.
    pub(super) fn compare(
        &mut self,
        commit_lsn: Lsn,
        digest: TransactionDigest,
        expected: Option<(Lsn, DedupRecord)>,
    ) -> Compared {
        self.next = Lsn::new(commit_lsn.get().saturating_add(1));
        match expected {
            Some((at, record)) if at == commit_lsn => {
                if record.digest == *digest.bytes() {
                    return Compared::Same;
                }
                Compared::Another(format!("transaction at {commit_lsn} differs from the one received before"))
            }
            Some((at, _)) => Compared::Another(left_out(at)),
            None if commit_lsn < self.adopted => Compared::Same,
            None => Compared::Another(format!("transaction at {commit_lsn} was not received before")),
        }
    }

    /// The stream has passed what was received before: reads what should have come and did not. None when
    /// that was checked already.
    pub(super) fn close(&mut self) -> Option<impl FnOnce(&dyn Store) -> Expected + use<>> {
        let to = self.until.take()?;
        let (flow, incarnation, from) = (self.flow, self.incarnation, self.next);
        Some(move |store: &dyn Store| first_received(store, flow, incarnation, from, to))
    }
}

pub(super) fn left_out(at: Lsn) -> String {
    format!("transaction at {at}, received before, was not sent again")
}

/// The first transaction with a commit LSN in `[from, to)` that was received.
fn first_received(store: &dyn Store, flow: FlowId, incarnation: Incarnation, from: Lsn, to: Lsn) -> Expected {
    if from >= to {
        return Ok(None);
    }
    let key = |lsn| dedup::key(flow, incarnation, lsn);
    let mut first = None;
    store.scan(Family::Dedup, &key(from), &key(to), Order::Ascending, &mut |key, _| {
        first = read_u64(key, 8).map(Lsn::new);
        Ok(ControlFlow::Break(()))
    })?;
    let Some(commit_lsn) = first else { return Ok(None) };
    let record = dedup::get(store, flow, incarnation, commit_lsn)?;
    Ok(record.map(|record| (commit_lsn, record)))
}
