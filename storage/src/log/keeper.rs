//! The log retention keeper: one pass over one flow decides what leaves its log, its dedup index and its
//! events, and packs it into one batch. It is the only writer of a flow's floor.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use super::prune::{self, Prune};
use super::retention::{AppliedIndex, RetainApplied};
use crate::families::{dedup, events, flows, quarantine};
use crate::records::{EventRecord, Floor, LoggedBytes, PruneRule, QuarantineState};
use crate::{Batch, Error, FlowId, Incarnation, Lsn, Store, Timestamp};

/// Events kept of each flow.
const EVENTS: u64 = 10_000;
/// Dedup records and events that leave in one pass.
const PASS_DELETES: usize = 10_000;

/// How long what stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    pub applied: RetainApplied,
    pub dedup: Duration,
}

/// What the store does not know of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circumstances {
    pub now: Timestamp,
    /// The slot's `restart_lsn`; while it is unknown the dedup index keeps everything.
    pub restart_lsn: Option<Lsn>,
    /// Applied transactions from here on must stay, for instance until the target has flushed them.
    pub pinned_from: Option<Lsn>,
}

/// What one pass wants written, and what it leaves.
#[derive(Debug)]
pub struct Pass {
    /// Empty when nothing leaves.
    pub batch: Batch,
    pub floor: Option<Floor>,
    /// To be written with the next sequence number of the flow, in the same batch.
    pub event: Option<EventRecord>,
    /// The log after this pass, and how much of it is not applied.
    pub used: LoggedBytes,
    pub unapplied: LoggedBytes,
}

/// What the keeper has counted, by flow.
#[derive(Debug, Default)]
pub struct Keeper {
    flows: BTreeMap<FlowId, Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    incarnation: Incarnation,
    applied: AppliedIndex,
    /// Commit LSNs below are counted.
    counted_below: Lsn,
    /// Nothing is left of the dedup index below, and of the events up to.
    dedup_below: Lsn,
    events_below: u64,
}

impl Keeper {
    pub fn new() -> Self {
        Self::default()
    }

    /// One pass over one flow; none when there is nothing of it to keep. What it returns must be written
    /// before the next pass.
    ///
    /// # Errors
    /// `ReadFailed`, `Corruption`: nothing leaves then.
    pub fn pass(
        &mut self,
        store: &dyn Store,
        flow: FlowId,
        retention: Retention,
        now: Circumstances,
    ) -> Result<Option<Pass>, Error> {
        let Some(parts) = flows::parts(store, flow)? else { return Ok(None) };
        let Some(lineage) = &parts.lineage else { return Ok(None) };
        let applied = parts.applied.unwrap_or_default();
        let counted = self.flows.entry(flow).or_default();
        counted.restart_at(lineage.incarnation, parts.floor.as_ref());
        counted.count(store, flow, applied.position)?;
        let limit = keep_from(store, flow, applied.position, now.pinned_from)?;

        let mut batch = Batch::new();
        let (mut floor, mut event) = (parts.floor.clone(), None);
        if let Some(last) = counted.applied.prunable(now.now, retention.applied, limit) {
            let rule = PruneRule::RetainApplied;
            let prune = Prune { flow, incarnation: lineage.incarnation, last, rule, at: now.now };
            let pruned = prune::step(&mut batch, store, prune)?;
            counted.applied.pruned(Lsn::new(pruned.pruned_below.get().saturating_sub(1)));
            event = event_of(floor.as_ref(), &pruned);
            floor = Some(pruned);
        }
        let log_from = floor.as_ref().map_or(Lsn::ZERO, |floor| floor.pruned_below);
        counted.prune_dedup(&mut batch, store, flow, retention.dedup, now, log_from)?;
        counted.trim_events(&mut batch, store, flow)?;
        let pruned = floor.as_ref().map_or_else(LoggedBytes::default, |floor| floor.pruned);
        let used = parts.durable.appended.minus(pruned);
        let unapplied = used.minus(counted.applied.total());
        Ok(Some(Pass { batch, floor, event, used, unapplied }))
    }

    /// The flow was removed.
    pub fn forget(&mut self, flow: FlowId) {
        self.flows.remove(&flow);
    }
}

/// The first position that must stay whatever its age.
fn keep_from(store: &dyn Store, flow: FlowId, applied: Lsn, pinned: Option<Lsn>) -> Result<Lsn, Error> {
    let open = quarantine::of_flow(store, flow)?.into_iter().filter(|record| match record.state {
        QuarantineState::Open | QuarantineState::Replaying => true,
        QuarantineState::Replayed
        | QuarantineState::ReplayedInPart
        | QuarantineState::Discarded
        | QuarantineState::Superseded => false,
    });
    let quarantined = open.map(|record| record.transaction.commit_lsn).min();
    Ok([Some(applied), quarantined, pinned].into_iter().flatten().min().unwrap_or(applied))
}

/// The first pruning by a rule is worth an event; the floor itself says the rest.
fn event_of(before: Option<&Floor>, now: &Floor) -> Option<EventRecord> {
    let same = |floor: &Floor| floor.rule == now.rule && floor.incarnation == now.incarnation;
    if before.is_some_and(same) {
        return None;
    }
    Some(EventRecord {
        at: now.at,
        kind: "log.pruned".to_owned(),
        from: before.map_or_else(|| "whole".to_owned(), |floor| format!("from {}", floor.pruned_below)),
        to: format!("from {}", now.pruned_below),
        cause: "applied transactions passed log.retain_applied".to_owned(),
        code: None,
        evidence: None,
    })
}

impl Counted {
    /// A new incarnation counts from its beginning, a new process from the floor.
    fn restart_at(&mut self, incarnation: Incarnation, floor: Option<&Floor>) {
        if self.incarnation == incarnation {
            return;
        }
        let floor = floor.filter(|floor| floor.incarnation == incarnation);
        let counted_below = floor.map_or(Lsn::ZERO, |floor| floor.pruned_below);
        *self = Self { incarnation, counted_below, events_below: self.events_below, ..Self::default() };
    }

    /// Counts what was applied since the last pass, from the small records of the dedup index.
    fn count(&mut self, store: &dyn Store, flow: FlowId, applied: Lsn) -> Result<(), Error> {
        let from = self.counted_below;
        dedup::read_from(store, flow, self.incarnation, from, &mut |commit_lsn, record| {
            if commit_lsn >= applied {
                return Ok(ControlFlow::Break(()));
            }
            let record = record?;
            self.applied.add(commit_lsn, Timestamp::from_unix_micros(record.received), record.bytes);
            self.counted_below = Lsn::new(commit_lsn.get() + 1);
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Down to the slot's restart position, whatever its age, and at least the time asked for; never what
    /// the log still holds.
    fn prune_dedup(
        &mut self,
        batch: &mut Batch,
        store: &dyn Store,
        flow: FlowId,
        retain: Duration,
        now: Circumstances,
        log_from: Lsn,
    ) -> Result<(), Error> {
        let Some(restart) = now.restart_lsn else { return Ok(()) };
        let below = restart.min(log_from);
        let mut left = PASS_DELETES;
        dedup::read_from(store, flow, self.incarnation, self.dedup_below, &mut |commit_lsn, record| {
            let received = Timestamp::from_unix_micros(record?.received);
            let young = u128::from(now.now.micros_since(received)) <= retain.as_micros();
            if commit_lsn >= below || young || left == 0 {
                return Ok(ControlFlow::Break(()));
            }
            left -= 1;
            batch.delete(crate::Family::Dedup, dedup::key(flow, self.incarnation, commit_lsn));
            self.dedup_below = Lsn::new(commit_lsn.get() + 1);
            Ok(ControlFlow::Continue(()))
        })
    }

    fn trim_events(&mut self, batch: &mut Batch, store: &dyn Store, flow: FlowId) -> Result<(), Error> {
        let Some((newest, _)) = events::newest(store, flow, 1)?.pop() else { return Ok(()) };
        let below = (newest + 1).saturating_sub(EVENTS);
        let mut left = PASS_DELETES;
        for sequence in events::sequences(store, flow, self.events_below, below)? {
            if left == 0 {
                break;
            }
            left -= 1;
            batch.delete(crate::Family::Events, events::key(flow, sequence));
            self.events_below = sequence + 1;
        }
        Ok(())
    }
}
