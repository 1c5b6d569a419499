//! What may become of a quarantine record.
//!
//! ```text
//! Open -> Replaying -> Replayed          Open -> Discarded      (reason and digest prefix)
//!   ^---------'            |             Open -> Replayed       (the checkpoint is found beyond it)
//!   '----------------------'             (the target went back, and it failed again)
//! ```
//! `ReplayedInPart` and `Superseded` belong to snapshot runs; no step here leads to them or away.

use trellara_storage::records::{QuarantineAction, QuarantineRecord, QuarantineState, Resolution};
use trellara_storage::{Lsn, Timestamp, TransactionId};

/// Hexadecimal digits of the transaction digest that a discard must name.
const DIGEST_PREFIX: usize = 8;

/// Who decides, when and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    pub name: String,
    pub reason: Option<String>,
    pub at: Timestamp,
}

/// Why a decision was not taken.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("no quarantined transaction at commit LSN {}", .0.commit_lsn)]
    NotFound(TransactionId),
    #[error("{id} is {}, it must be open", name(*.state))]
    NotOpen { id: String, state: QuarantineState },
    #[error("{id} is {}, which this step does not start from", name(*.state))]
    Illegal { id: String, state: QuarantineState },
    #[error("a discard needs a reason")]
    ReasonMissing,
    #[error("a discard needs at least {DIGEST_PREFIX} hexadecimal digits of the transaction digest")]
    DigestTooShort,
    #[error("the digest does not begin like that of the transaction at {0}")]
    DigestMismatch(Lsn),
    #[error(transparent)]
    Store(#[from] trellara_storage::Error),
}

/// The name in events, API and CLI.
pub(crate) fn name(state: QuarantineState) -> &'static str {
    match state {
        QuarantineState::Open => "open",
        QuarantineState::Replaying => "replaying",
        QuarantineState::Replayed => "replayed",
        QuarantineState::ReplayedInPart => "replayed in part",
        QuarantineState::Discarded => "discarded",
        QuarantineState::Superseded => "superseded",
    }
}

/// Open -> Replaying.
pub(super) fn replay(mut record: QuarantineRecord, by: Actor) -> Result<QuarantineRecord, Refused> {
    require_open(&record)?;
    record.state = QuarantineState::Replaying;
    record.resolution = Some(resolution(QuarantineAction::Replay, by));
    Ok(record)
}

/// Open -> Discarded.
pub(super) fn discard(
    mut record: QuarantineRecord,
    by: Actor,
    digest_prefix: &str,
) -> Result<QuarantineRecord, Refused> {
    require_open(&record)?;
    if by.reason.as_deref().is_none_or(|reason| reason.trim().is_empty()) {
        return Err(Refused::ReasonMissing);
    }
    if digest_prefix.len() < DIGEST_PREFIX {
        return Err(Refused::DigestTooShort);
    }
    if !record.digest.to_string().starts_with(&digest_prefix.to_ascii_lowercase()) {
        return Err(Refused::DigestMismatch(record.transaction.commit_lsn));
    }
    record.state = QuarantineState::Discarded;
    record.resolution = Some(resolution(QuarantineAction::Discard, by));
    Ok(record)
}

/// The target's checkpoint lies beyond the transaction: it took effect, here or by another engine.
pub(crate) fn passed(mut record: QuarantineRecord, at: Timestamp) -> Result<QuarantineRecord, Refused> {
    match record.state {
        QuarantineState::Replaying => {}
        QuarantineState::Open => {
            let reason = Some("the checkpoint at the target was found beyond it".to_owned());
            let by = Actor { name: "checkpoint".to_owned(), reason, at };
            record.resolution = Some(resolution(QuarantineAction::Replay, by));
        }
        QuarantineState::Replayed
        | QuarantineState::ReplayedInPart
        | QuarantineState::Discarded
        | QuarantineState::Superseded => {
            return Err(Refused::Illegal { id: record.id, state: record.state });
        }
    }
    record.state = QuarantineState::Replayed;
    Ok(record)
}

/// A replay failed, or a target that went back met the transaction again. `fresh` is what a first failure
/// would have recorded now.
pub(crate) fn failed_again(
    prior: QuarantineRecord,
    fresh: QuarantineRecord,
) -> Result<QuarantineRecord, Refused> {
    match prior.state {
        QuarantineState::Replaying | QuarantineState::Replayed => {}
        QuarantineState::Open
        | QuarantineState::ReplayedInPart
        | QuarantineState::Discarded
        | QuarantineState::Superseded => {
            return Err(Refused::Illegal { id: prior.id, state: prior.state });
        }
    }
    let mut attempts = prior.attempts;
    attempts.extend(fresh.attempts);
    Ok(QuarantineRecord { id: prior.id, at: prior.at, attempts, ..fresh })
}

fn require_open(record: &QuarantineRecord) -> Result<(), Refused> {
    match record.state {
        QuarantineState::Open => Ok(()),
        QuarantineState::Replaying
        | QuarantineState::Replayed
        | QuarantineState::ReplayedInPart
        | QuarantineState::Discarded
        | QuarantineState::Superseded => Err(Refused::NotOpen { id: record.id.clone(), state: record.state }),
    }
}

fn resolution(action: QuarantineAction, by: Actor) -> Resolution {
    Resolution { action, actor: by.name, reason: by.reason, at: by.at }
}

#[cfg(test)]
mod tests;
