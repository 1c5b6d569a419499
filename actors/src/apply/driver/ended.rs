//! Why a stretch of work ended, and what failures mean for the task.

use trellara_storage::Error;

use crate::apply::ApplyExit;
use crate::apply::read::Damage;
use crate::failure::{Class, Code, ErrorFacts, ErrorKind, Failure, Place, classify};

/// Why a stretch of work ended.
#[derive(Debug)]
pub(super) enum Ended {
    Exit(ApplyExit),
    /// Attach anew, at once.
    Reattach,
    /// Attach anew after a pause that grows.
    Pause(Failure),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        match error {
            Error::Corruption { what, .. } => {
                Ended::Exit(ApplyExit::Failed(found(Place::Change(0), Code::RecordDamaged, what)))
            }
            Error::DiskFull => {
                Ended::Pause(waiting(Code::StoreFull, "no space left for the store".to_owned()))
            }
            error @ (Error::FormatVersion { .. }
            | Error::Locked { .. }
            | Error::WriteFailed(_)
            | Error::ReadFailed(_)
            | Error::BackupFailed(_)
            | Error::Closed) => Ended::Exit(ApplyExit::Store(error)),
        }
    }
}

/// A failure that apply cannot do anything about.
pub(super) fn beyond_apply(failure: Failure) -> Ended {
    match failure.class {
        // Whether it is really another's, the claim tells.
        Class::Transient | Class::Fence => Ended::Pause(failure),
        Class::Lineage => Ended::Exit(ApplyExit::LineageLost { code: failure.code, what: failure.summary }),
        Class::Endpoint(_)
        | Class::RowData
        | Class::SchemaContract
        | Class::Integrity
        | Class::Defect
        | Class::Unknown => Ended::Exit(ApplyExit::Failed(failure)),
    }
}

pub(super) fn lost() -> Ended {
    let what = "the flow's checkpoint row is gone from the target".to_owned();
    Ended::Exit(ApplyExit::LineageLost { code: Code::TargetLost, what })
}

/// The row is ours and where it should be, and yet was not found: look again.
pub(super) fn contradiction() -> Failure {
    found(Place::Checkpoint, Code::Contention, "checkpoint row was not found where it stands".to_owned())
}

pub(super) fn damaged(damage: Damage) -> Failure {
    found(Place::Change(0), damage.code, damage.what)
}

/// Goes away by itself, and is not the target's doing.
pub(super) fn waiting(code: Code, summary: String) -> Failure {
    let mut failure = found(Place::Checkpoint, code, summary.clone());
    failure.class = Class::Transient;
    failure.detail.class = failure.class.name().to_owned();
    Failure { summary, ..failure }
}

pub(super) fn found(place: Place, code: Code, message: String) -> Failure {
    classify(place, ErrorFacts { kind: Some(ErrorKind::Finding(code)), message, ..ErrorFacts::default() })
}
