//! Builds the record of a transaction that was parked, and the events of its life.

use trellara_storage::records::{Attempt, EventRecord, QuarantineRecord, QuarantineState};
use trellara_storage::{Lsn, Timestamp, TransactionDigest, TransactionId};

use super::machine::name;
use crate::failure::{ChangeEvidence, Failure, Place};

/// What is known of a transaction when it is parked, read from its record or, where that is damaged, from
/// what was noted beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) transaction: TransactionId,
    pub(crate) digest: TransactionDigest,
    pub(crate) end_lsn: Lsn,
    pub(crate) commit_time: Timestamp,
    pub(crate) changes: u64,
}

/// An open record. `checkpoint` is the applied commit LSN at the target.
pub(crate) fn open(
    id: String,
    subject: Subject,
    failure: Failure,
    checkpoint: Lsn,
    engine_version: &str,
    at: Timestamp,
) -> QuarantineRecord {
    let change = match failure.place {
        Place::Change(n) if n < subject.changes => Some(n + 1),
        Place::Change(_)
        | Place::SourceConnect
        | Place::Stream
        | Place::TargetConnect
        | Place::SessionSetup
        | Place::Checkpoint
        | Place::Commit => None,
    };
    let ChangeEvidence { image, conflicting_row, source_relation, target_relation, target_version } =
        failure.evidence.map(|evidence| *evidence).unwrap_or_default();
    QuarantineRecord {
        id,
        transaction: subject.transaction,
        digest: subject.digest,
        end_lsn: subject.end_lsn,
        commit_time: subject.commit_time,
        at,
        state: QuarantineState::Open,
        failure: (*failure.detail).clone(),
        change,
        changes: subject.changes,
        image,
        conflicting_row,
        source_relation,
        target_relation,
        checkpoint,
        engine_version: engine_version.to_owned(),
        source_version: None,
        target_version,
        attempts: vec![Attempt { at, failure: *failure.detail }],
        resolution: None,
    }
}

/// The event of a record's new state. `cause` is one line without row values.
pub(crate) fn event(
    record: &QuarantineRecord,
    before: Option<QuarantineState>,
    cause: String,
    at: Timestamp,
) -> EventRecord {
    let kind = match (record.state, before) {
        (QuarantineState::Open, None) => "quarantine.opened",
        (QuarantineState::Open, Some(_)) => "quarantine.reopened",
        (QuarantineState::Replaying, _) => "quarantine.replaying",
        (QuarantineState::Replayed, _) => "quarantine.replayed",
        (QuarantineState::ReplayedInPart, _) => "quarantine.replayed_in_part",
        (QuarantineState::Discarded, _) => "quarantine.discarded",
        (QuarantineState::Superseded, _) => "quarantine.superseded",
    };
    EventRecord {
        at,
        kind: kind.to_owned(),
        from: before.map_or_else(String::new, |state| name(state).to_owned()),
        to: name(record.state).to_owned(),
        cause,
        code: (record.state == QuarantineState::Open).then(|| record.failure.code.clone()),
        evidence: Some(record.id.clone()),
    }
}
