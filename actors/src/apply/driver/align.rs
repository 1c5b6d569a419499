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

/// The transaction that the checkpoint names, where this log has it or will receive it: it must be the
/// same one. Below the start and below the floor nothing is known of it here.
pub(super) fn to_prove(
    lineage: &Lineage,
    row: &Checkpoint,
    known: &Known,
) -> Option<(Lsn, TransactionDigest)> {
    let named = (row.applied.commit_lsn, row.digest?);
    (named.0 >= reach(lineage, known)).then_some(named)
}

fn reach(lineage: &Lineage, known: &Known) -> Lsn {
    let pruned = known.floor.as_ref().filter(|floor| floor.incarnation == lineage.incarnation);
    pruned.map_or(lineage.start, |floor| floor.pruned_below.max(lineage.start))
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
    let reach = reach(lineage, known);
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
        (commit_lsn, digest): (Lsn, TransactionDigest),
    ) -> Result<(), Ended> {
        let flow = self.context.flow;
        let logged = self.context.log.read(move |store| log::get(store, flow, incarnation, commit_lsn)).await;
        match logged {
            Ok(Some(logged)) if logged.digest() == digest => Ok(()),
            Ok(Some(_) | None) => {
                let what = format!("transaction at {commit_lsn} is another one at the target");
                Err(Ended::Exit(ApplyExit::LineageLost { code: Code::AnotherHistory, what }))
            }
            // A damaged record behind the checkpoint is not applied again.
            Err(Error::Corruption { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
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
