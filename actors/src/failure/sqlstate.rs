//! What a SQLSTATE says before the place is known: the table of the failure classes in data form.

/// Trouble of the server or the connection: means the same wherever it is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Trouble {
    ConnectionBroken,
    /// Lock, deadlock, serialization, or a statement that was cancelled.
    Contention,
    Restarting,
    TooManyConnections,
    ObjectInUse,
    /// A prepared statement that is not there any more.
    StatementGone,
    Authentication,
    DatabaseMissing,
    ReadOnly,
    ResourcesExhausted,
    SystemError,
    Damaged,
}

/// What is judged by the place where it is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Matter {
    /// 58P01: at the stream, WAL that was removed.
    FileMissing,
    NotPermitted,
    Internal,
    InvalidValue,
    /// 22P02: an enum label that the target lacks is a matter of schema.
    InvalidText,
    /// 22023: at the stream, an option that the server does not know.
    InvalidParameter,
    Constraint,
    /// 23505, which may be the row itself.
    Unique,
    LimitExceeded,
    Raised,
    TableMissing,
    ColumnMissing,
    TypeMismatch,
    SchemaMisfit,
    NotSupported,
    WrongState,
    ObjectMissing,
    Cardinality,
    Syntax,
    Unlisted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Anywhere(Trouble),
    ByPlace(Matter),
}

use Matter as M;
use Meaning::{Anywhere, ByPlace};
use Trouble as T;

const STATES: &[(&str, Meaning)] = &[
    ("0A000", ByPlace(M::NotSupported)),
    ("21000", ByPlace(M::Cardinality)),
    ("22023", ByPlace(M::InvalidParameter)),
    ("22P02", ByPlace(M::InvalidText)),
    ("23505", ByPlace(M::Unique)),
    ("25006", Anywhere(T::ReadOnly)),
    ("25P03", Anywhere(T::ConnectionBroken)),
    ("25P04", Anywhere(T::ConnectionBroken)),
    ("26000", Anywhere(T::StatementGone)),
    ("3D000", Anywhere(T::DatabaseMissing)),
    ("40001", Anywhere(T::Contention)),
    ("40P01", Anywhere(T::Contention)),
    ("42501", ByPlace(M::NotPermitted)),
    ("42601", ByPlace(M::Syntax)),
    ("42703", ByPlace(M::ColumnMissing)),
    ("42704", ByPlace(M::ObjectMissing)),
    ("42804", ByPlace(M::TypeMismatch)),
    ("42809", ByPlace(M::SchemaMisfit)),
    ("42883", ByPlace(M::SchemaMisfit)),
    ("428C9", ByPlace(M::SchemaMisfit)),
    ("42P01", ByPlace(M::TableMissing)),
    ("44000", ByPlace(M::Constraint)),
    ("53100", Anywhere(T::ResourcesExhausted)),
    ("53200", Anywhere(T::ResourcesExhausted)),
    ("53300", Anywhere(T::TooManyConnections)),
    ("53400", Anywhere(T::ResourcesExhausted)),
    ("54000", ByPlace(M::LimitExceeded)),
    ("54001", ByPlace(M::SchemaMisfit)),
    ("54011", ByPlace(M::SchemaMisfit)),
    ("55000", ByPlace(M::WrongState)),
    ("55006", Anywhere(T::ObjectInUse)),
    ("55P03", Anywhere(T::Contention)),
    ("57014", Anywhere(T::Contention)),
    ("57P01", Anywhere(T::Restarting)),
    ("57P02", Anywhere(T::Restarting)),
    ("57P03", Anywhere(T::Restarting)),
    ("57P04", Anywhere(T::DatabaseMissing)),
    ("57P05", Anywhere(T::ConnectionBroken)),
    ("58P01", ByPlace(M::FileMissing)),
    ("P0001", ByPlace(M::Raised)),
    ("XX000", ByPlace(M::Internal)),
    ("XX001", Anywhere(T::Damaged)),
    ("XX002", Anywhere(T::Damaged)),
];

/// Whole classes: the first two characters of a state that is not listed itself.
const CLASSES: &[(&str, Meaning)] = &[
    ("08", Anywhere(T::ConnectionBroken)),
    ("22", ByPlace(M::InvalidValue)),
    ("23", ByPlace(M::Constraint)),
    ("28", Anywhere(T::Authentication)),
    ("58", Anywhere(T::SystemError)),
];

pub(super) fn meaning(sqlstate: &str) -> Meaning {
    let listed = |table: &[(&str, Meaning)], key: &str| {
        table.iter().find(|(state, _)| *state == key).map(|(_, meaning)| *meaning)
    };
    let class = sqlstate.get(..2).unwrap_or(sqlstate);
    listed(STATES, sqlstate).or_else(|| listed(CLASSES, class)).unwrap_or(ByPlace(M::Unlisted))
}
