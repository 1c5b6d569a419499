//! What lies ahead of the applied position in the durable log: the next group, or the transaction that
//! stands in the way. Every record is verified before it is believed, its transaction digest included; of
//! a chunked one the manifest pins the parts, and whoever reads a part checks it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use trellara_storage::families::log::LoggedTransaction;
use trellara_storage::families::{dedup, log, quarantine, relations};
use trellara_storage::records::{ArchivedChangeBlock, ArchivedContent, QuarantineRecord};
use trellara_storage::{
    Error, FlowId, Incarnation, Lsn, RelationDigest, RelationId, RelationVersion, Store, Timestamp,
    TransactionDigest, TransactionId, Xid,
};

use super::GroupLimits;
use super::grouping::{Admission, Grouping, Weight};
use crate::capture::{TransactionHasher, Undigestible};
use crate::failure::Code;
use crate::quarantine::Subject;

/// Relation digests that were read already, by relation and version. They never change.
pub(super) type RelationDigests = BTreeMap<(RelationId, RelationVersion), RelationDigest>;

/// Where to read, and how much.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) flow: FlowId,
    pub(super) incarnation: Incarnation,
    /// The applied position: everything at or above it is new.
    pub(super) from: Lsn,
    /// The durable commit LSN: nothing above it is safe yet.
    pub(super) until: Lsn,
    pub(super) limits: GroupLimits,
    /// Commit LSNs of transactions that have a quarantine record.
    pub(super) recorded: BTreeSet<Lsn>,
}

#[derive(Debug)]
pub(super) enum Next {
    Nothing,
    Group(Vec<Arc<LoggedTransaction>>),
    /// One that has a quarantine record, and its own record or what is wrong with it.
    Recorded(Box<QuarantineRecord>, Result<Arc<LoggedTransaction>, Damage>),
    Damaged(Damage),
}

/// A transaction that must not be applied as it is stored (I10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Damage {
    pub(super) code: Code,
    pub(super) what: String,
    pub(super) subject: Subject,
}

/// # Errors
/// `ReadFailed`; `Corruption` where the order itself cannot be read on.
pub(super) fn next(
    store: &dyn Store,
    reading: &Reading,
    digests: &mut RelationDigests,
) -> Result<Next, Error> {
    let mut grouping = Grouping::new(reading.limits);
    let mut group = Vec::new();
    let mut in_the_way = None;
    let Reading { flow, incarnation, from, .. } = *reading;
    log::read_from(store, flow, incarnation, from, &mut |commit_lsn, found| {
        if commit_lsn > reading.until {
            return Ok(ControlFlow::Break(()));
        }
        let recorded = reading.recorded.contains(&commit_lsn);
        if recorded && !group.is_empty() {
            return Ok(ControlFlow::Break(()));
        }
        let verified = verify(store, reading, commit_lsn, found, digests)?;
        if recorded {
            in_the_way = recorded_next(store, reading, commit_lsn, verified)?;
            return Ok(ControlFlow::Break(()));
        }
        match verified {
            Ok(transaction) => {
                let admission = grouping.offer(weight(&transaction));
                if admission != Admission::Refused {
                    group.push(Arc::new(transaction));
                }
                let more = admission == Admission::Taken;
                Ok(if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            }
            Err(damage) => {
                in_the_way = group.is_empty().then_some(Next::Damaged(damage));
                Ok(ControlFlow::Break(()))
            }
        }
    })?;
    Ok(match in_the_way {
        Some(next) => next,
        None if group.is_empty() => Next::Nothing,
        None => Next::Group(group),
    })
}

fn recorded_next(
    store: &dyn Store,
    reading: &Reading,
    commit_lsn: Lsn,
    verified: Result<LoggedTransaction, Damage>,
) -> Result<Option<Next>, Error> {
    let record = quarantine::get(store, identity(reading, commit_lsn, Xid::default()))?;
    Ok(record.map(|record| Next::Recorded(Box::new(record), verified.map(Arc::new))))
}

fn weight(transaction: &LoggedTransaction) -> Weight {
    let record = transaction.record();
    Weight {
        changes: record.header.changes.to_native(),
        bytes: record.header.bytes.to_native(),
        alone: matches!(record.content, ArchivedContent::Chunked(_)),
    }
}

fn verify(
    store: &dyn Store,
    reading: &Reading,
    commit_lsn: Lsn,
    found: Result<LoggedTransaction, Error>,
    digests: &mut RelationDigests,
) -> Result<Result<LoggedTransaction, Damage>, Error> {
    let transaction = match found {
        Ok(transaction) => transaction,
        Err(Error::Corruption { what, .. }) => {
            let subject = noted(store, reading, commit_lsn)?;
            return Ok(Err(Damage { code: Code::RecordDamaged, what, subject }));
        }
        Err(error) => return Err(error),
    };
    let refused = match &transaction.record().content {
        ArchivedContent::Chunked(_) => None,
        ArchivedContent::Inline(block) => refuse(store, reading, &transaction, block, digests)?,
    };
    Ok(match refused {
        None => Ok(transaction),
        Some((code, what)) => Err(Damage { code, what, subject: subject(&transaction) }),
    })
}

/// What speaks against an inline transaction, if anything does.
fn refuse(
    store: &dyn Store,
    reading: &Reading,
    transaction: &LoggedTransaction,
    block: &ArchivedChangeBlock,
    digests: &mut RelationDigests,
) -> Result<Option<(Code, String)>, Error> {
    loop {
        let known = |relation, version| digests.get(&(relation, version)).copied();
        match digest(transaction, block, &known) {
            Ok(digest) if digest == transaction.digest() => return Ok(None),
            Ok(_) => {
                return Ok(Some((Code::DigestMismatch, "transaction digest does not match".to_owned())));
            }
            Err(error @ (Undigestible::OutOfBounds | Undigestible::Truncate)) => {
                return Ok(Some((Code::RecordDamaged, error.to_string())));
            }
            Err(error @ Undigestible::UnknownVersion(relation, version)) => {
                let Some(found) = relation_digest(store, reading, relation, version)? else {
                    return Ok(Some((Code::RelationVersionMissing, error.to_string())));
                };
                digests.insert((relation, version), found);
            }
        }
    }
}

fn digest(
    transaction: &LoggedTransaction,
    block: &ArchivedChangeBlock,
    known: &dyn Fn(RelationId, RelationVersion) -> Option<RelationDigest>,
) -> Result<TransactionDigest, Undigestible> {
    let TransactionId { commit_lsn, xid, .. } = transaction.id();
    let mut hasher = TransactionHasher::new(commit_lsn, xid, [], known);
    hasher.archived(block)?;
    Ok(hasher.finish().digest)
}

fn relation_digest(
    store: &dyn Store,
    reading: &Reading,
    relation: RelationId,
    version: RelationVersion,
) -> Result<Option<RelationDigest>, Error> {
    match relations::get(store, reading.flow, reading.incarnation, relation, version) {
        Ok(record) => Ok(record.map(|record| record.digest)),
        // A description that does not decode describes nothing.
        Err(Error::Corruption { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn subject(transaction: &LoggedTransaction) -> Subject {
    let header = &transaction.record().header;
    Subject {
        transaction: transaction.id(),
        digest: transaction.digest(),
        end_lsn: transaction.end_lsn(),
        commit_time: Timestamp::from_unix_micros(header.commit_time.to_native()),
        changes: header.changes.to_native(),
    }
}

/// What the dedup index still knows of a transaction whose record does not decode: its time is that of
/// receipt, and it ends right behind its commit LSN.
fn noted(store: &dyn Store, reading: &Reading, commit_lsn: Lsn) -> Result<Subject, Error> {
    let received = dedup::get(store, reading.flow, reading.incarnation, commit_lsn)?;
    let (xid, digest, received) =
        received.map_or((0, [0; 16], 0), |received| (received.xid, received.digest, received.received));
    Ok(Subject {
        transaction: identity(reading, commit_lsn, Xid::new(xid)),
        digest: TransactionDigest::new(digest),
        end_lsn: Lsn::new(commit_lsn.get() + 1),
        commit_time: Timestamp::from_unix_micros(received),
        changes: 0,
    })
}

fn identity(reading: &Reading, commit_lsn: Lsn, xid: Xid) -> TransactionId {
    TransactionId { flow: reading.flow, incarnation: reading.incarnation, commit_lsn, xid }
}
