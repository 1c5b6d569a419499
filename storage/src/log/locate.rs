//! Is a transaction, or a position, in the durable log? Answered from the store alone, so that it works
//! while source and target are away.

use std::ops::ControlFlow;

use crate::families::chunks::{self, PartKey};
use crate::families::flows::FlowParts;
use crate::families::{dedup, flows, log, quarantine};
use crate::records::{ArchivedContent, Floor, Outcome, PartRef, QuarantineState};
use crate::{CaptureSession, Error, FlowId, Incarnation, Lsn, Store, Timestamp, TransactionId, Xid};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The transaction with this commit LSN, or the first one behind this position.
    Lsn(Lsn),
    /// Every transaction with this xid.
    Xid(Xid),
    /// The ends of the range of positions around this time: the last transaction committed at or before it,
    /// and the first committed behind it (commit times are not in LSN order).
    At(Timestamp),
}

/// Where a transaction or position was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Whole in the log: record, and every part of a large transaction, with matching checksums.
    InLog { transaction: TransactionId, end_lsn: Lsn, commit_time: Timestamp, parts: usize },
    /// The record does not carry what was written.
    Damaged { commit_lsn: Lsn, what: String },
    /// The record is whole, one of its parts is missing or damaged.
    PartDamaged { transaction: TransactionId, part: u32, what: String },
    /// It was here and left by this rule.
    Pruned { commit_lsn: Lsn, floor: Floor },
    /// Received up to before it, nothing at or behind it yet.
    NotReceived { position: Lsn },
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Applied,
    Waiting,
    Quarantined(QuarantineState),
    Decided(Outcome),
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    pub place: Place,
    /// None where there is no transaction to stand anywhere.
    pub standing: Option<Standing>,
}

/// The log of one flow as a whole, and the answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub incarnation: Incarnation,
    pub parts: FlowParts,
    /// First and last transaction that the log holds.
    pub first: Option<Lsn>,
    pub last: Option<Lsn>,
    pub found: Vec<Located>,
}

impl Location {
    /// Whether everything from `position` on that was received is still here to be replayed: nothing at or
    /// behind it was pruned, and it is not ahead of what was received.
    pub fn reaches(&self, position: Lsn) -> bool {
        let floor = self.parts.floor.as_ref().filter(|floor| floor.incarnation == self.incarnation);
        let start = self.parts.lineage.as_ref().map_or(Lsn::ZERO, |lineage| lineage.start);
        let from = floor.map_or(start, |floor| floor.pruned_below.max(start));
        from <= position && position <= self.parts.durable.progress.position
    }
}

/// Answers for the newest incarnation of a flow; none when the flow has none.
///
/// # Errors
/// `ReadFailed`; `Corruption` of the flow's own parts. Damage in the log is an answer, not an error.
pub fn locate(store: &dyn Store, flow: FlowId, wanted: Wanted) -> Result<Option<Location>, Error> {
    let Some(parts) = flows::parts(store, flow)? else { return Ok(None) };
    let floor = parts.floor.as_ref().map(|floor| floor.incarnation);
    let Some(incarnation) = parts.lineage.as_ref().map(|lineage| lineage.incarnation).or(floor) else {
        return Ok(None);
    };
    let search = Search { store, flow, incarnation, parts: &parts };
    let found = match wanted {
        Wanted::Lsn(lsn) => vec![search.at_lsn(lsn)?],
        Wanted::Xid(xid) => search.with_xid(xid)?,
        Wanted::At(time) => search.around(time)?,
    };
    let (first, last) = log::extent(store, flow, incarnation)?;
    Ok(Some(Location { incarnation, parts, first, last, found }))
}

struct Search<'a> {
    store: &'a dyn Store,
    flow: FlowId,
    incarnation: Incarnation,
    parts: &'a FlowParts,
}

impl Search<'_> {
    fn at_lsn(&self, lsn: Lsn) -> Result<Located, Error> {
        if let Some(floor) = self.pruned(lsn) {
            return Ok(Located {
                place: Place::Pruned { commit_lsn: lsn, floor },
                standing: self.standing(lsn)?,
            });
        }
        let mut found = None;
        log::read_from(self.store, self.flow, self.incarnation, lsn, &mut |commit_lsn, transaction| {
            found = Some((commit_lsn, transaction));
            Ok(ControlFlow::Break(()))
        })?;
        match found {
            Some((commit_lsn, transaction)) => self.located(commit_lsn, transaction),
            None => {
                let position = self.parts.durable.progress.position;
                Ok(Located { place: Place::NotReceived { position }, standing: None })
            }
        }
    }

    fn with_xid(&self, xid: Xid) -> Result<Vec<Located>, Error> {
        let mut commits = Vec::new();
        dedup::read_from(self.store, self.flow, self.incarnation, Lsn::ZERO, &mut |commit_lsn, record| {
            // A damaged dedup record may be the one: the log itself tells.
            if record.map_or(true, |record| record.xid == xid.get()) {
                commits.push(commit_lsn);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let found = commits.into_iter().map(|commit_lsn| self.at_lsn(commit_lsn));
        let is_it = |located: &Located| match &located.place {
            Place::InLog { transaction, .. } | Place::PartDamaged { transaction, .. } => {
                transaction.xid == xid
            }
            Place::Damaged { .. } | Place::Pruned { .. } => true,
            Place::NotReceived { .. } => false,
        };
        found.filter(|located| located.as_ref().map_or(true, is_it)).collect()
    }

    fn around(&self, time: Timestamp) -> Result<Vec<Located>, Error> {
        let time = time.unix_micros();
        let (mut last_before, mut first_after) = (None, None);
        log::read_from(
            self.store,
            self.flow,
            self.incarnation,
            Lsn::ZERO,
            &mut |commit_lsn, transaction| {
                let Ok(transaction) = transaction else { return Ok(ControlFlow::Continue(())) };
                if transaction.record().header.commit_time.to_native() <= time {
                    last_before = Some(commit_lsn);
                } else {
                    first_after = first_after.or(Some(commit_lsn));
                }
                Ok(ControlFlow::Continue(()))
            },
        )?;
        let mut ends: Vec<Lsn> = last_before.into_iter().chain(first_after).collect();
        ends.sort();
        ends.into_iter().map(|lsn| self.at_lsn(lsn)).collect()
    }

    fn pruned(&self, lsn: Lsn) -> Option<Floor> {
        let floor = self.parts.floor.as_ref()?;
        (floor.incarnation == self.incarnation && lsn < floor.pruned_below).then(|| floor.clone())
    }

    fn located(
        &self,
        commit_lsn: Lsn,
        transaction: Result<log::LoggedTransaction, Error>,
    ) -> Result<Located, Error> {
        let place = match transaction {
            Ok(transaction) => self.whole(&transaction)?,
            Err(Error::Corruption { what, .. }) => Place::Damaged { commit_lsn, what },
            Err(other) => return Err(other),
        };
        Ok(Located { place, standing: self.standing(commit_lsn)? })
    }

    fn whole(&self, logged: &log::LoggedTransaction) -> Result<Place, Error> {
        let transaction = logged.id();
        let record = logged.record();
        let mut parts = 0;
        if let ArchivedContent::Chunked(manifest) = &record.content {
            let session = CaptureSession::new(manifest.session.to_native());
            for (n, pinned) in (0u32..).zip(manifest.parts.iter()) {
                let TransactionId { flow, incarnation, xid, .. } = transaction;
                let pinned = PartRef {
                    hash: pinned.hash,
                    changes: pinned.changes.to_native(),
                    bytes: pinned.bytes.to_native(),
                };
                match chunks::get(self.store, PartKey { flow, incarnation, session, xid, n }, &pinned) {
                    Ok(_) => parts += 1,
                    Err(Error::Corruption { what, .. }) => {
                        return Ok(Place::PartDamaged { transaction, part: n, what });
                    }
                    Err(other) => return Err(other),
                }
            }
        }
        let commit_time = Timestamp::from_unix_micros(record.header.commit_time.to_native());
        Ok(Place::InLog { transaction, end_lsn: logged.end_lsn(), commit_time, parts })
    }

    fn standing(&self, commit_lsn: Lsn) -> Result<Option<Standing>, Error> {
        let evidence = TransactionId {
            flow: self.flow,
            incarnation: self.incarnation,
            commit_lsn,
            // Evidence is found by position; the xid is not part of its key.
            xid: Xid::default(),
        };
        let decided = dedup::get(self.store, self.flow, self.incarnation, commit_lsn)?;
        if let Some(outcome) = decided.and_then(|record| record.outcome) {
            return Ok(Some(Standing::Decided(outcome)));
        }
        let applied = self.parts.applied.is_some_and(|applied| applied.covers(commit_lsn));
        Ok(match quarantine::get(self.store, evidence)? {
            Some(record) => Some(Standing::Quarantined(record.state)),
            None if applied => Some(Standing::Applied),
            None => Some(Standing::Waiting),
        })
    }
}
