//! Why a group stopped, before it is judged.

use std::sync::Arc;

use tokio_postgres::Error;
use trellara_actors::failure::{Code, ErrorFacts, ErrorKind, Place};
use trellara_storage::records::Operation;

use super::change::Misfit;
use super::flight::Note;
use super::mapped::Mapped;
use crate::contract::Breach;
use crate::postgres::failure;

/// A change as it stands in the log, kept until its answer is there.
#[derive(Clone, Debug)]
pub(super) struct ChangeCopy {
    pub(super) mapped: Arc<Mapped>,
    pub(super) operation: Operation,
    pub(super) body: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Stop {
    pub(super) place: Place,
    pub(super) member: Option<usize>,
    pub(super) cause: Cause,
    pub(super) change: Option<Box<ChangeCopy>>,
}

#[derive(Debug)]
pub(super) enum Cause {
    Sql(Error),
    /// No answer within the deadline.
    Silence,
    /// The checkpoint row is not where the group starts from, or not ours.
    NotThere,
    Rows {
        code: Code,
        expected: u64,
        met: u64,
    },
    Misfit(Misfit),
    Breach(Box<Breach>),
    /// Values that a deferrable key would not have let pass.
    Constraint(String),
    Store(trellara_storage::Error),
    /// A relation version that the store lacks.
    RelationMissing,
}

impl Stop {
    pub(super) fn new(note: Note, cause: Cause) -> Self {
        Self { place: note.place, member: note.member, cause, change: note.change }
    }

    /// What classification needs, as far as it is known without asking the target.
    pub(super) fn facts(&self) -> ErrorFacts {
        let found = |code: Code, message: String| ErrorFacts {
            kind: Some(ErrorKind::Finding(code)),
            message,
            ..ErrorFacts::default()
        };
        let mut facts = match &self.cause {
            Cause::Sql(error) => failure::facts(error),
            Cause::Silence => failure::timed_out("statement"),
            Cause::NotThere => found(Code::Fenced, "the checkpoint row is not ours".to_owned()),
            Cause::Rows { code, expected, met } => found(*code, format!("{met} of {expected} rows were met")),
            Cause::Misfit(misfit) => found(misfit.code, misfit.what.to_owned()),
            Cause::Breach(breach) => ErrorFacts {
                schema: Some(breach.table.schema.clone()),
                table: Some(breach.table.name.clone()),
                column: breach.column.clone(),
                remedy: breach.ddl.clone(),
                ..found(breach.code, breach.what.clone())
            },
            Cause::Constraint(name) => ErrorFacts {
                constraint: Some(name.clone()),
                ..found(
                    Code::ConstraintViolation,
                    "values of a deferrable key are not unique at the end of the transaction".to_owned(),
                )
            },
            Cause::Store(error) => store(error),
            Cause::RelationMissing => {
                found(Code::RelationVersionMissing, "relation version is not in the store".to_owned())
            }
        };
        if let Some(change) = &self.change
            && facts.table.is_none()
        {
            facts.schema = Some(change.mapped.mapping.table.name.schema.clone());
            facts.table = Some(change.mapped.mapping.table.name.name.clone());
        }
        facts
    }
}

/// Damage is the record's, everything else the store's.
fn store(error: &trellara_storage::Error) -> ErrorFacts {
    use trellara_storage::{Error, Family};
    let code = match error {
        Error::Corruption { family: Family::Chunks, .. } => Code::PartDamaged,
        Error::Corruption { .. } => Code::RecordDamaged,
        Error::FormatVersion { .. } => Code::StoreFormat,
        Error::StoreDamaged { .. } => Code::StoreDamaged,
        Error::Locked { .. } => Code::StoreLocked,
        Error::DiskFull => Code::StoreFull,
        Error::WriteFailed(_) | Error::ReadFailed(_) | Error::BackupFailed(_) | Error::Closed => {
            Code::StoreFailed
        }
    };
    ErrorFacts { kind: Some(ErrorKind::Finding(code)), message: error.to_string(), ..ErrorFacts::default() }
}
