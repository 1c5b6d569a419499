//! The operator's decisions, each as one batch: the record in its new state, and the event that says who
//! and why. The flow's actor submits it and then starts apply again; nobody else writes the record then.

use trellara_storage::families::{dedup, events, quarantine};
use trellara_storage::records::{Outcome, QuarantineRecord, QuarantineState};
use trellara_storage::{Batch, Error, Store, TransactionId};

use super::machine::{self, Actor, Refused};
use crate::flow::EventSequence;

/// A decision, to be submitted as it is.
#[derive(Clone, Debug)]
pub struct Decision {
    pub record: QuarantineRecord,
    pub batch: Batch,
}

/// The record with this short id, whichever flow it belongs to.
///
/// # Errors
/// `ReadFailed`, `Corruption`.
pub fn find(store: &dyn Store, id: &str) -> Result<Option<QuarantineRecord>, Error> {
    Ok(quarantine::all(store)?.into_iter().find(|record| record.id.eq_ignore_ascii_case(id)))
}

/// Lets the parked transaction be applied once more, by the ordinary path and in order.
///
/// # Errors
/// `NotFound`, `NotOpen`, `Store`.
pub fn request_replay(
    store: &dyn Store,
    transaction: TransactionId,
    by: Actor,
    numbers: &EventSequence,
) -> Result<Decision, Refused> {
    let record = quarantine::get(store, transaction)?.ok_or(Refused::NotFound(transaction))?;
    let record = machine::replay(record, by.clone())?;
    Ok(Decision { batch: batch(&record, &by, numbers), record })
}

/// Lets the flow pass the parked transaction without its effects. `digest_prefix` are the first eight or
/// more hexadecimal digits of its transaction digest.
///
/// # Errors
/// `NotFound`, `NotOpen`, `ReasonMissing`, `DigestTooShort`, `DigestMismatch`, `Store`.
pub fn discard(
    store: &dyn Store,
    transaction: TransactionId,
    by: Actor,
    digest_prefix: &str,
    numbers: &EventSequence,
) -> Result<Decision, Refused> {
    let record = quarantine::get(store, transaction)?.ok_or(Refused::NotFound(transaction))?;
    let record = machine::discard(record, by.clone(), digest_prefix)?;
    let mut batch = batch(&record, &by, numbers);
    let TransactionId { flow, incarnation, commit_lsn, .. } = transaction;
    if let Some(mut received) = dedup::get(store, flow, incarnation, commit_lsn)? {
        received.outcome = Some(Outcome::Discarded);
        dedup::put(&mut batch, flow, incarnation, commit_lsn, &received);
    }
    Ok(Decision { batch, record })
}

fn batch(record: &QuarantineRecord, by: &Actor, numbers: &EventSequence) -> Batch {
    let cause = match &by.reason {
        Some(reason) => format!("by {}: {reason}", by.name),
        None => format!("by {}", by.name),
    };
    let event = super::event(record, Some(QuarantineState::Open), cause, by.at);
    let mut batch = Batch::new();
    quarantine::put(&mut batch, record);
    events::put(&mut batch, record.transaction.flow, numbers.next(), &event);
    batch
}
