//! Evidence before state: what is known of a transaction that cannot be applied, or was decided upon,
//! becomes durable in one batch, and only then is it reported (I7).

use trellara_storage::families::{events, flows, quarantine};
use trellara_storage::records::{FlowPart, QuarantineRecord, QuarantineState};
use trellara_storage::{Batch, Error, Progress, Store};

use super::{Driver, Ended};
use crate::apply::{ApplyExit, ApplyReport};
use crate::failure::Failure;
use crate::ports::{Clock, FlowLog, TargetPort};
use crate::quarantine::{self as records, Subject, event, failed_again, passed, short_id};

impl<T: TargetPort, L: FlowLog, C: Clock, R: Fn(ApplyReport) + Send> Driver<T, L, C, R> {
    /// Sets the transaction aside, or back to open where it was before.
    pub(super) async fn park(&mut self, applied: Progress, subject: Subject, failure: Failure) -> Ended {
        match self.parked(applied, subject, failure).await {
            Ok(record) => Ended::Exit(ApplyExit::Quarantined(Box::new(record))),
            Err(error) => error.into(),
        }
    }

    async fn parked(
        &mut self,
        applied: Progress,
        subject: Subject,
        failure: Failure,
    ) -> Result<QuarantineRecord, Error> {
        let now = self.context.clock.now();
        let cause = failure.summary.clone();
        let (prior, id) = self.context.log.read(move |store| identity(store, subject)).await?;
        let version = &self.context.engine.version;
        let fresh = records::open(id, subject, failure, applied.commit_lsn, version, now);
        let before = prior.as_ref().map(|prior| prior.state);
        let record = match prior {
            None => fresh,
            Some(prior) => failed_again(prior, fresh).expect("only a replayed transaction is tried again"),
        };
        let mut batch = Batch::new();
        quarantine::put(&mut batch, &record);
        let event = event(&record, before, cause, now);
        events::put(&mut batch, self.context.flow, self.context.events.next(), &event);
        flows::put(&mut batch, self.context.flow, FlowPart::Applied, &applied);
        self.context.log.submit(batch).await?.await?;
        Ok(record)
    }

    /// The transaction that this record is about is behind the checkpoint now.
    pub(super) async fn resolved(
        &mut self,
        applied: Progress,
        record: Box<QuarantineRecord>,
    ) -> Result<(), Ended> {
        let before = record.state;
        let record = match before {
            QuarantineState::Replaying => {
                let now = self.context.clock.now();
                let record = passed(*record, now).expect("a replaying record may be passed");
                let mut batch = Batch::new();
                quarantine::put(&mut batch, &record);
                let event = event(&record, Some(before), "applied in order".to_owned(), now);
                events::put(&mut batch, self.context.flow, self.context.events.next(), &event);
                flows::put(&mut batch, self.context.flow, FlowPart::Applied, &applied);
                self.context.log.submit(batch).await?.await?;
                Box::new(record)
            }
            QuarantineState::Open
            | QuarantineState::Replayed
            | QuarantineState::ReplayedInPart
            | QuarantineState::Discarded
            | QuarantineState::Superseded => record,
        };
        (self.report)(ApplyReport::Resolved(record));
        Ok(())
    }
}

/// The record that there is already, and its id or a new one.
fn identity(store: &dyn Store, subject: Subject) -> Result<(Option<QuarantineRecord>, String), Error> {
    if let Some(prior) = quarantine::get(store, subject.transaction)? {
        let id = prior.id.clone();
        return Ok((Some(prior), id));
    }
    let taken = quarantine::all(store)?;
    let id = short_id(subject.transaction, |id| taken.iter().any(|record| record.id == id));
    Ok((None, id))
}
