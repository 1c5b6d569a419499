//! `classify`: place and error to class and code, pure and exhaustive. `sqlstate` says what the server
//! meant; here the place decides what that means for the flow. Only `Place::Change` may give a class that
//! ends in quarantine: a revoked password must not park ten thousand transactions.

use std::fmt::Write;

use trellara_storage::records::FailureDetail;

use super::sqlstate::{Matter, Meaning, Trouble, meaning};
use super::{ChangeEvidence, Class, Code, Endpoint, Failure, Place};

/// What kind of thing went wrong, before it is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The server answered with an error of this SQLSTATE.
    Database {
        sqlstate: String,
    },
    NameResolution,
    ConnectRefused,
    Tls,
    /// The connection broke, timed out or ended early.
    ConnectionLost,
    /// The server spoke something that this engine does not understand.
    Protocol,
    /// The engine itself found it: zero rows where one was expected, a column that the target lacks, a
    /// damaged record. The code names what.
    Finding(Code),
}

/// On 42704, which catalog object a read found missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    Slot,
    Publication,
}

/// An error as an adapter hands it over: the server's fields, and the few facts that a judgement needs and
/// only the adapter can look up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorFacts {
    pub kind: Option<ErrorKind>,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    pub context: Option<String>,
    pub constraint: Option<String>,
    pub schema: Option<String>,
    pub table: Option<String>,
    pub column: Option<String>,
    /// Source file of the server that raised it (`aclchk.c`): the one field that no locale translates.
    pub source_file: Option<String>,
    /// On 42501 at a change: the role holds the privilege on the data table (`has_table_privilege`).
    pub has_privilege: Option<bool>,
    /// On 42704 at the source.
    pub missing: Option<Missing>,
    /// On 22P02: the column's type is an enum.
    pub enum_type: bool,
    /// On 23505: the violated index is the one that rows are found by.
    pub duplicate_key: bool,
    /// On XX000: a probe write to schema `trellara` failed as well.
    pub probe_failed: bool,
    /// SQL for the target that satisfies a broken contract, exact and complete.
    pub remedy: Vec<String>,
    pub evidence: Option<Box<ChangeEvidence>>,
}

/// Judges an error. Every error has a class.
pub fn classify(place: Place, facts: ErrorFacts) -> Failure {
    let (class, code) = confine(place, judge(place, &facts));
    let sqlstate = match &facts.kind {
        Some(ErrorKind::Database { sqlstate }) => Some(sqlstate.clone()),
        Some(
            ErrorKind::NameResolution
            | ErrorKind::ConnectRefused
            | ErrorKind::Tls
            | ErrorKind::ConnectionLost
            | ErrorKind::Protocol
            | ErrorKind::Finding(_),
        )
        | None => None,
    };
    Failure {
        place,
        class,
        code,
        summary: summary(code, sqlstate.as_deref(), &facts),
        detail: Box::new(FailureDetail {
            class: class.name().to_owned(),
            code: code.to_string(),
            sqlstate,
            message: facts.message,
            detail: facts.detail,
            hint: facts.hint,
            context: facts.context,
            constraint: facts.constraint,
            schema: facts.schema,
            table: facts.table,
            column: facts.column,
            remedy: facts.remedy,
        }),
        evidence: facts.evidence,
    }
}

type Judgement = (Class, Code);

const UNKNOWN: Judgement = (Class::Unknown, Code::Unclassified);

fn judge(place: Place, facts: &ErrorFacts) -> Judgement {
    let side = place.endpoint();
    match &facts.kind {
        Some(ErrorKind::Database { sqlstate }) => match meaning(sqlstate) {
            Meaning::Anywhere(what) => trouble(side, what),
            Meaning::ByPlace(what) => matter(place, what, facts),
        },
        Some(ErrorKind::NameResolution) => (Class::Endpoint(side), Code::NameResolution),
        Some(ErrorKind::ConnectRefused) => (Class::Endpoint(side), Code::ConnectFailed),
        Some(ErrorKind::Tls) => (Class::Endpoint(side), Code::TlsFailed),
        Some(ErrorKind::ConnectionLost) => (Class::Transient, Code::ConnectionLost),
        Some(ErrorKind::Protocol) => (Class::Defect, Code::ProtocolDefect),
        Some(ErrorKind::Finding(code)) => (code.class(side), *code),
        None => UNKNOWN,
    }
}

/// Trouble with the server or the connection is never the row's fault, not even inside a trigger.
fn trouble(side: Endpoint, trouble: Trouble) -> Judgement {
    match trouble {
        Trouble::ConnectionBroken => (Class::Transient, Code::ConnectionLost),
        Trouble::Contention => (Class::Transient, Code::Contention),
        Trouble::Restarting => (Class::Transient, Code::ServerStarting),
        Trouble::TooManyConnections => (Class::Transient, Code::ResourcesExhausted),
        Trouble::StatementGone => (Class::Transient, Code::StalePlan),
        Trouble::ObjectInUse => match side {
            Endpoint::Source => (Class::Transient, Code::SlotInUse),
            Endpoint::Target => (Class::Transient, Code::Contention),
        },
        Trouble::Authentication => (Class::Endpoint(side), Code::AuthenticationFailed),
        Trouble::DatabaseMissing => (Class::Endpoint(side), Code::DatabaseMissing),
        Trouble::ReadOnly => (Class::Endpoint(side), Code::ReadOnly),
        Trouble::ResourcesExhausted => (Class::Endpoint(side), Code::ResourcesExhausted),
        Trouble::SystemError => (Class::Endpoint(side), Code::ServerSystemError),
        Trouble::Damaged => (Class::Endpoint(side), Code::ServerDamaged),
    }
}

fn matter(place: Place, matter: Matter, facts: &ErrorFacts) -> Judgement {
    match place {
        Place::Stream => at_stream(matter, facts),
        Place::Checkpoint => at_checkpoint(matter, facts),
        Place::Change(_) => at_change(matter, facts),
        Place::SourceConnect | Place::TargetConnect | Place::SessionSetup | Place::Commit => {
            in_session(place.endpoint(), matter, facts)
        }
    }
}

/// Where no row is being changed and no history is being read: the session is refused, or nobody knows.
fn in_session(side: Endpoint, matter: Matter, facts: &ErrorFacts) -> Judgement {
    match matter {
        Matter::NotPermitted => (Class::Endpoint(side), Code::PermissionDenied),
        Matter::FileMissing => (Class::Endpoint(side), Code::ServerSystemError),
        Matter::Internal => internal(side, facts),
        Matter::NotSupported if plan_changed(facts) => (Class::Transient, Code::StalePlan),
        Matter::ObjectMissing => match facts.missing {
            Some(Missing::Slot) => (Class::Lineage, Code::SlotMissing),
            Some(Missing::Publication) => (Class::Lineage, Code::PublicationMissing),
            // The next connect reads the catalog and decides.
            None => UNKNOWN,
        },
        Matter::InvalidValue
        | Matter::InvalidText
        | Matter::InvalidParameter
        | Matter::Constraint
        | Matter::Unique
        | Matter::LimitExceeded
        | Matter::Raised
        | Matter::TableMissing
        | Matter::ColumnMissing
        | Matter::TypeMismatch
        | Matter::SchemaMisfit
        | Matter::NotSupported
        | Matter::WrongState
        | Matter::Cardinality
        | Matter::Syntax
        | Matter::Unlisted => UNKNOWN,
    }
}

/// Slot and server were looked at before the stream was opened, so what is refused now is the history
/// (invalidated, removed) or the protocol.
fn at_stream(matter: Matter, facts: &ErrorFacts) -> Judgement {
    let option = matter == Matter::Internal && facts.message.starts_with("unrecognized pgoutput option");
    let refused = matches!(matter, Matter::NotSupported | Matter::InvalidParameter | Matter::Syntax);
    if matches!(matter, Matter::WrongState | Matter::FileMissing) {
        (Class::Lineage, Code::SlotInvalidated)
    } else if option || refused {
        (Class::Defect, Code::ProtocolDefect)
    } else {
        in_session(Endpoint::Source, matter, facts)
    }
}

/// A checkpoint table that is gone is a row that is gone.
fn at_checkpoint(matter: Matter, facts: &ErrorFacts) -> Judgement {
    if matter == Matter::TableMissing {
        return (Class::Lineage, Code::TargetLost);
    }
    in_session(Endpoint::Target, matter, facts)
}

fn at_change(matter: Matter, facts: &ErrorFacts) -> Judgement {
    let misfit = |code| (Class::SchemaContract, code);
    if let Some(judgement) = not_of_the_row(matter, facts) {
        return judgement;
    }
    if matter == Matter::Raised || in_function(facts) {
        return (Class::RowData, Code::TargetTriggerRaised);
    }
    match matter {
        Matter::InvalidText if facts.enum_type => misfit(Code::ColumnTypeMismatch),
        Matter::InvalidText | Matter::InvalidValue | Matter::InvalidParameter | Matter::LimitExceeded => {
            (Class::RowData, Code::RowDataInvalid)
        }
        Matter::Unique if facts.duplicate_key => (Class::RowData, Code::RowDuplicate),
        Matter::Unique | Matter::Constraint => (Class::RowData, Code::ConstraintViolation),
        Matter::TableMissing => misfit(Code::TableMissing),
        Matter::ColumnMissing => misfit(Code::ColumnMissing),
        Matter::TypeMismatch => misfit(Code::ColumnTypeMismatch),
        Matter::SchemaMisfit | Matter::NotSupported | Matter::WrongState => misfit(Code::ContractBroken),
        // One row against one row: the engine's own statement is at fault.
        Matter::Cardinality => (Class::Defect, Code::StatementDefect),
        Matter::FileMissing
        | Matter::NotPermitted
        | Matter::Internal
        | Matter::Raised
        | Matter::ObjectMissing
        | Matter::Syntax
        | Matter::Unlisted => UNKNOWN,
    }
}

/// What heals without the row, whatever was being done to it.
fn not_of_the_row(matter: Matter, facts: &ErrorFacts) -> Option<Judgement> {
    let heals = matter == Matter::FileMissing
        || matter == Matter::Internal
        || matter == Matter::NotSupported
        || (matter == Matter::NotPermitted && waits_for_permission(facts));
    let judgement = in_session(Endpoint::Target, matter, facts);
    (heals && judgement != UNKNOWN).then_some(judgement)
}

/// 42501 at a change: a revoked grant and the server's own file system heal without the row; what a target
/// function was not permitted to do does not, nor does a check that refuses although the grant is there.
fn waits_for_permission(facts: &ErrorFacts) -> bool {
    let by_access_check = facts.source_file.as_deref().is_some_and(|file| ACCESS_CHECKS.contains(&file));
    match facts.has_privilege {
        Some(false) | None => true,
        Some(true) => !in_function(facts) && !by_access_check,
    }
}

/// XX000: a quota that refuses every write is the server's, a lookup that failed is a plan that outlived
/// its object.
fn internal(side: Endpoint, facts: &ErrorFacts) -> Judgement {
    if facts.probe_failed {
        (Class::Endpoint(side), Code::ResourcesExhausted)
    } else if facts.message.starts_with("cache lookup failed") {
        (Class::Transient, Code::StalePlan)
    } else {
        UNKNOWN
    }
}

/// 0A000 `cached plan must not change result type`, told by where it is raised: its text is translated.
fn plan_changed(facts: &ErrorFacts) -> bool {
    facts.source_file.as_deref() == Some("plancache.c")
        || facts.message == "cached plan must not change result type"
}

fn in_function(facts: &ErrorFacts) -> bool {
    names_function(facts.context.as_deref())
}

/// Raised by a target trigger or another function, whatever its state.
pub fn raised_in_function(failure: &Failure) -> bool {
    names_function(failure.detail.context.as_deref())
}

/// COPY, row locks and parameters have a context of their own, which says nothing of functions.
fn names_function(context: Option<&str>) -> bool {
    let own = |line: &str| OWN_CONTEXTS.iter().any(|prefix| line.starts_with(prefix));
    context.into_iter().flat_map(str::lines).any(|line| !line.is_empty() && !own(line))
}

/// Where the server checks privileges and row security, as opposed to opening files.
const ACCESS_CHECKS: &[&str] = &["aclchk.c", "execMain.c", "rewriteHandler.c"];

const OWN_CONTEXTS: &[&str] = &["COPY ", "while ", "portal ", "unnamed portal "];

/// Outside `Change` nothing may end in quarantine: there the class falls to unknown, which retries.
fn confine(place: Place, judgement: Judgement) -> Judgement {
    let (class, code) = judgement;
    let at_change = matches!(place, Place::Change(_));
    match class {
        Class::RowData | Class::SchemaContract | Class::Integrity if !at_change => (Class::Unknown, code),
        Class::Transient
        | Class::Endpoint(_)
        | Class::RowData
        | Class::SchemaContract
        | Class::Integrity
        | Class::Lineage
        | Class::Fence
        | Class::Defect
        | Class::Unknown => judgement,
    }
}

/// Names only: title, SQLSTATE, constraint, relation, column. PostgreSQL's own words stay in the detail.
fn summary(code: Code, sqlstate: Option<&str>, facts: &ErrorFacts) -> String {
    let mut text = code.title().to_owned();
    let relation = match (&facts.schema, &facts.table) {
        (Some(schema), Some(table)) => Some(format!("{schema}.{table}")),
        (None, Some(table)) => Some(table.clone()),
        (Some(_) | None, None) => None,
    };
    let parts = [
        ("SQLSTATE", sqlstate),
        ("constraint", facts.constraint.as_deref()),
        ("relation", relation.as_deref()),
        ("column", facts.column.as_deref()),
    ];
    let named = parts.iter().filter_map(|(what, name)| Some((what, (*name)?)));
    for (n, (what, name)) in named.enumerate() {
        let separator = if n == 0 { ": " } else { ", " };
        write!(text, "{separator}{what} {name}").expect("writing to a String");
    }
    text
}

#[cfg(test)]
mod tests;
