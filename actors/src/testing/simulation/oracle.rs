//! What must hold whatever happens. Each check names the invariant that it stands for.

use std::fmt;

use trellara_storage::Lsn;
use trellara_storage::families::{flows, quarantine};
use trellara_storage::records::{Durable, FlowPart};
use trellara_storage::{FlowId, MemoryStore, TransactionId};

use super::engine::Ends;
use super::source::Committed;
use super::target::Target;
use crate::failure::Code;

/// Rows from here on were rolled back at the source.
const ROLLED_BACK: u64 = u64::MAX / 2;

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub invariant: &'static str,
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.what)
    }
}

pub(super) fn violated(invariant: &'static str, what: String) -> Result<(), Violation> {
    Err(Violation { invariant, what })
}

/// I1, after a crash: nothing was confirmed by this engine that it does not hold.
pub(super) fn durability(store: &MemoryStore, flow: FlowId, confirmed: Option<Lsn>) -> Result<(), Violation> {
    let durable: Option<Durable> =
        flows::get(store, flow, FlowPart::Durable).expect("the memory store reads");
    let held = durable.unwrap_or_default().progress.position;
    match confirmed {
        Some(confirmed) if confirmed > held => {
            violated("I1", format!("confirmed {confirmed}, after the crash durable is {held}"))
        }
        Some(_) | None => Ok(()),
    }
}

/// I7, after a crash: a transaction that was set aside has its evidence.
pub(super) fn evidence(store: &MemoryStore, transaction: TransactionId) -> Result<(), Violation> {
    match quarantine::get(store, transaction).expect("the memory store reads") {
        Some(_) => Ok(()),
        None => violated("I7", format!("no evidence of the transaction at {}", transaction.commit_lsn)),
    }
}

/// I2, I3, I4, I5 and I11: the target's content is the source's history up to the checkpoint, each
/// transaction whole and once, written by the holder of the row only. `start` is where the flow began.
pub(super) fn content(history: &[Committed], start: Lsn, target: &Target) -> Result<(), Violation> {
    if let Some((writer, holder)) = target.foreign_writes.first() {
        return violated(
            "I11",
            format!("generation {} wrote under {}", writer.generation, holder.generation),
        );
    }
    if let Some(pair) = target.effects.windows(2).find(|pair| pair[0] > pair[1]) {
        return violated("I2", format!("{} took effect after {}", pair[1], pair[0]));
    }
    if let Some(row) = target.rows.keys().find(|row| **row >= ROLLED_BACK) {
        return violated("I2", format!("row {row} of a rolled-back transaction is visible"));
    }
    let Some(row) = &target.row else { return Ok(()) };
    for committed in history.iter().filter(|committed| committed.commit_lsn >= start) {
        transaction(committed, row.applied.commit_lsn, target)?;
    }
    Ok(())
}

fn transaction(committed: &Committed, applied: Lsn, target: &Target) -> Result<(), Violation> {
    let at = committed.commit_lsn;
    let counts: Vec<u32> =
        committed.rows.iter().map(|row| target.rows.get(row).copied().unwrap_or(0)).collect();
    let (present, whole) = (counts.iter().any(|&count| count > 0), counts.iter().all(|&count| count > 0));
    let expected = at <= applied && !target.passed.contains(&at);
    if counts.iter().any(|&count| count > 1) {
        return violated("I4", format!("transaction at {at} took effect twice"));
    }
    match (present, whole, expected) {
        (true, false, _) => violated("I2", format!("a part of the transaction at {at} is visible")),
        (true, true, false) => violated("I3", format!("{at} is visible, the checkpoint stands at {applied}")),
        (false, _, true) => violated("I5", format!("{at} is missing, the checkpoint stands at {applied}")),
        (true, true, true) | (false, _, false) => Ok(()),
    }
}

/// I8 the other way round: the only history there is was not taken for another.
pub(super) fn no_false_alarm(ends: &Ends) -> Result<(), Violation> {
    let alarms = [ends.lineage_lost, ends.target_lost];
    if alarms.contains(&Some(Code::AnotherHistory)) {
        return violated("I8", "the only history was taken for another".to_owned());
    }
    Ok(())
}

/// I8: no transaction of another history follows one of this history.
pub(super) fn one_history(lost: &[Committed], other: &[Committed], target: &Target) -> Result<(), Violation> {
    let visible = |committed: &&Committed| committed.rows.iter().any(|row| target.rows.contains_key(row));
    match (lost.iter().find(visible), other.iter().find(visible)) {
        (Some(ours), Some(theirs)) => violated(
            "I8",
            format!("{} of one history and {} of another took effect", ours.commit_lsn, theirs.commit_lsn),
        ),
        (Some(_) | None, _) => Ok(()),
    }
}
