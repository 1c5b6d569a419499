//! Takes transactions out of the log: records, their chunk parts, and the floor that says so, in one batch.
//!
//! Small steps delete key by key, because thousands of small range deletions slow every read down; a step
//! above `POINT_DELETES` records, and a whole flow, go by range.

use std::ops::ControlFlow;

use crate::codec::key::Key;
use crate::families::chunks::PartKey;
use crate::families::{default, flows, log};
use crate::records::{
    ArchivedContent, ArchivedManifest, Floor, FlowIdentity, FlowPart, LoggedBytes, PruneRule,
};
use crate::{Batch, CaptureSession, Error, Family, FlowId, Incarnation, Lsn, Store, Timestamp, Xid};

/// Records of one step that still go key by key.
const POINT_DELETES: usize = 10_000;
/// Records of one step at most.
const STEP_RECORDS: usize = 100_000;

/// What one step takes out: everything from the floor up to `last`, itself included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prune {
    pub flow: FlowId,
    pub incarnation: Incarnation,
    pub last: Lsn,
    pub rule: PruneRule,
    pub at: Timestamp,
}

/// Adds one step to the batch and returns the new floor. Long prunings take several steps: the floor says
/// how far this one came.
///
/// # Errors
/// `ReadFailed`, `Corruption` of the floor. A damaged record is taken out like any other.
pub fn step(batch: &mut Batch, store: &dyn Store, prune: Prune) -> Result<Floor, Error> {
    let Prune { flow, incarnation, last, rule, at } = prune;
    let before: Option<Floor> = flows::get(store, flow, FlowPart::Floor)?;
    let from = start(before.as_ref(), incarnation);
    let mut step = Step { flow, incarnation, keys: Vec::new(), parts: Batch::new(), pruned: pruned(&before) };
    let mut below = Lsn::new(last.get().saturating_add(1));
    log::read_from(store, flow, incarnation, from, &mut |commit_lsn, transaction| {
        if commit_lsn > last {
            return Ok(ControlFlow::Break(()));
        }
        if step.keys.len() == STEP_RECORDS {
            below = commit_lsn;
            return Ok(ControlFlow::Break(()));
        }
        step.take(commit_lsn, transaction.ok().as_ref());
        Ok(ControlFlow::Continue(()))
    })?;
    let floor = Floor { incarnation, pruned_below: below, rule, at, pruned: step.pruned };
    step.write(batch, from, below);
    flows::put(batch, flow, FlowPart::Floor, &floor);
    Ok(floor)
}

/// Where the log of this incarnation begins.
fn start(floor: Option<&Floor>, incarnation: Incarnation) -> Lsn {
    floor.filter(|floor| floor.incarnation == incarnation).map_or(Lsn::ZERO, |floor| floor.pruned_below)
}

fn pruned(floor: &Option<Floor>) -> LoggedBytes {
    floor.as_ref().map_or_else(LoggedBytes::default, |floor| floor.pruned)
}

struct Step {
    flow: FlowId,
    incarnation: Incarnation,
    keys: Vec<Vec<u8>>,
    parts: Batch,
    pruned: LoggedBytes,
}

impl Step {
    fn take(&mut self, commit_lsn: Lsn, transaction: Option<&log::LoggedTransaction>) {
        self.keys.push(log::key(self.flow, self.incarnation, commit_lsn));
        let bytes = transaction.map_or(0, log::LoggedTransaction::logged_bytes);
        self.pruned = self.pruned.plus(LoggedBytes { bytes, transactions: 1 });
        if let Some(transaction) = transaction
            && let ArchivedContent::Chunked(manifest) = &transaction.record().content
        {
            self.take_parts(transaction.id().xid, manifest);
        }
    }

    fn take_parts(&mut self, xid: Xid, manifest: &ArchivedManifest) {
        let session = CaptureSession::new(manifest.session.to_native());
        let part = |n| PartKey { flow: self.flow, incarnation: self.incarnation, session, xid, n };
        let count = u32::try_from(manifest.parts.len()).expect("parts are numbered by u32");
        if manifest.parts.len() > POINT_DELETES {
            self.parts.delete_range(Family::Chunks, part(0).bytes(), part(count).bytes());
        } else {
            for n in 0..count {
                self.parts.delete(Family::Chunks, part(n).bytes());
            }
        }
    }

    fn write(self, batch: &mut Batch, from: Lsn, below: Lsn) {
        batch.append(self.parts);
        if self.keys.len() > POINT_DELETES {
            let key = |lsn| log::key(self.flow, self.incarnation, lsn);
            batch.delete_range(Family::Log, key(from), key(below));
        } else {
            for key in self.keys {
                batch.delete(Family::Log, key);
            }
        }
    }
}

/// Takes a whole flow out: log, parts, dedup index, relations and every part but its identity, which stays
/// as tombstone, and the floor, which says why nothing is there. Evidence, events and audit stay.
///
/// # Errors
/// `ReadFailed`, `Corruption`.
pub fn remove_flow(batch: &mut Batch, store: &dyn Store, flow: FlowId, at: Timestamp) -> Result<(), Error> {
    let Some(parts) = flows::parts(store, flow)? else { return Ok(()) };
    for family in [Family::Log, Family::Chunks, Family::Dedup, Family::Relations] {
        let (from, to) = Key::flow(flow).range();
        batch.delete_range(family, from, to);
    }
    for part in [FlowPart::Lineage, FlowPart::Durable, FlowPart::Applied, FlowPart::Phase] {
        batch.delete(Family::Flows, flows::key(flow, part));
    }
    default::clear_mark(batch, flow);
    let identity = FlowIdentity { removed: Some(at), ..parts.identity };
    flows::put(batch, flow, FlowPart::Identity, &identity);
    let floor = Floor {
        incarnation: parts.lineage.map_or(Incarnation::FIRST, |lineage| lineage.incarnation),
        pruned_below: parts.durable.progress.position,
        rule: PruneRule::FlowRemoved,
        at,
        pruned: parts.durable.appended,
    };
    flows::put(batch, flow, FlowPart::Floor, &floor);
    Ok(())
}
