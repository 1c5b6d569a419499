//! Whether the checkpoint that was found belongs to what is stored here, and what it settles: the position
//! is the checkpoint's, higher or lower, unless the log no longer reaches it.

use trellara_storage::families::{events, flows, log, quarantine};
use trellara_storage::records::{Floor, FlowPart, Lineage, QuarantineRecord, QuarantineState};
use trellara_storage::{Batch, Error, FlowId, Incarnation, Lsn, Progress, Store, TransactionDigest};

use super::{Driver, Ended};
use crate::apply::{ApplyExit, ApplyReport};
use crate::capture::lineage_name;
use crate::failure::Code;
use crate::ports::{Checkpoint, Clock, FlowLog, TargetPort};
use crate::quarantine::{event, passed};

/// What the store knows of the flow before the claim.
#[derive(Debug)]
pub(super) struct Known {
    /// None before the first claim.
    pub(super) applied: Option<Progress>,
    floor: Option<Floor>,
    /// Of the incarnation, oldest first.
    pub(super) records: Vec<QuarantineRecord>,
}

fn known(store: &dyn Store, flow: FlowId, incarnation: Incarnation) -> Result<Known, Error> {
    let mut records = quarantine::of_flow(store, flow)?;
    records.retain(|record| record.transaction.incarnation == incarnation);
    Ok(Known {
        applied: flows::get(store, flow, FlowPart::Applied)?,
        floor: flows::get(store, flow, FlowPart::Floor)?,
        records,
    })
}

/// Where the log begins: below it nothing is known of a transaction here.
fn reach(lineage: &Lineage, floor: Option<&Floor>) -> Lsn {
    let pruned = floor.filter(|floor| floor.incarnation == lineage.incarnation);
    pruned.map_or(lineage.start, |floor| floor.pruned_below.max(lineage.start))
}

/// Whether this store may hold the history that the checkpoint's transaction is of. The lineage is read
/// anew: when capture adopted the checkpoint after the claim, the log begins behind that transaction.
fn is_of_this_history(
    store: &dyn Store,
    flow: FlowId,
    incarnation: Incarnation,
    (commit_lsn, digest): (Lsn, TransactionDigest),
) -> Result<bool, Error> {
    let lineage: Option<Lineage> = flows::get(store, flow, FlowPart::Lineage)?;
    let floor: Option<Floor> = flows::get(store, flow, FlowPart::Floor)?;
    if lineage.is_none_or(|lineage| commit_lsn < reach(&lineage, floor.as_ref())) {
        return Ok(true);
    }
    match log::get(store, flow, incarnation, commit_lsn) {
        Ok(logged) => Ok(logged.is_some_and(|logged| logged.digest() == digest)),
        // A damaged record behind the checkpoint is not applied again.
        Err(Error::Corruption { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Same source, same incarnation, and within reach of the log.
pub(super) fn accept(lineage: &Lineage, row: &Checkpoint, known: &Known) -> Result<(), Ended> {
    let name = lineage_name(lineage.system_identifier, &lineage.slot);
    if row.incarnation != lineage.incarnation || row.lineage != name {
        let what = format!(
            "checkpoint is of {} incarnation {}, the log of {name} incarnation {}",
            row.lineage, row.incarnation, lineage.incarnation
        );
        return Err(Ended::Exit(ApplyExit::LineageLost { code: Code::AnotherHistory, what }));
    }
    let reach = reach(lineage, known.floor.as_ref());
    if row.applied.position < reach {
        let what = format!("checkpoint stands at {}, the log begins at {reach}", row.applied.position);
        return Err(Ended::Exit(ApplyExit::LineageLost { code: Code::TargetBehindLog, what }));
    }
    Ok(())
}

impl<T: TargetPort, L: FlowLog, C: Clock, R: Fn(ApplyReport) + Send> Driver<T, L, C, R> {
    pub(super) async fn known(&mut self, incarnation: Incarnation) -> Result<Known, Ended> {
        let flow = self.context.flow;
        Ok(self.context.log.read(move |store| known(store, flow, incarnation)).await?)
    }

    /// The log has come past the transaction that the checkpoint names: it must hold that very one. A log
    /// that is behind the target may be filled from a source with another history.
    pub(super) async fn same_history(
        &mut self,
        incarnation: Incarnation,
        named: (Lsn, TransactionDigest),
    ) -> Result<(), Ended> {
        let flow = self.context.flow;
        let query = move |store: &dyn Store| is_of_this_history(store, flow, incarnation, named);
        if self.context.log.read(query).await? {
            return Ok(());
        }
        let what = format!("transaction at {} is another one at the target", named.0);
        Err(Ended::Exit(ApplyExit::LineageLost { code: Code::AnotherHistory, what }))
    }

    /// Settles records that the checkpoint has passed, and makes the first claim durable.
    pub(super) async fn reconcile(&mut self, applied: Progress, known: Known) -> Result<(), Ended> {
        let now = self.context.clock.now();
        let mut settled = Vec::new();
        for record in known.records.into_iter().filter(|record| is_behind(record, applied)) {
            let before = record.state;
            let record = passed(record, now).expect("open and replaying records may be passed");
            settled.push((before, record));
        }
        if settled.is_empty() && known.applied == Some(applied) {
            return Ok(());
        }
        let mut batch = Batch::new();
        flows::put(&mut batch, self.context.flow, FlowPart::Applied, &applied);
        for (before, record) in &settled {
            let cause = "the checkpoint lies beyond it".to_owned();
            quarantine::put(&mut batch, record);
            let event = event(record, Some(*before), cause, now);
            events::put(&mut batch, self.context.flow, self.context.events.next(), &event);
        }
        self.context.log.submit(batch).await?.await?;
        self.noted = Some(self.context.clock.elapsed());
        for (_, record) in settled {
            (self.report)(ApplyReport::Resolved(Box::new(record)));
        }
        Ok(())
    }
}

fn is_behind(record: &QuarantineRecord, applied: Progress) -> bool {
    let undecided = match record.state {
        QuarantineState::Open | QuarantineState::Replaying => true,
        QuarantineState::Replayed
        | QuarantineState::ReplayedInPart
        | QuarantineState::Discarded
        | QuarantineState::Superseded => false,
    };
    undecided && applied.covers(record.transaction.commit_lsn)
}
