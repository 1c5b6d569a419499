//! A target that keeps the rules of the real one: a fenced checkpoint row, whole groups, a lease by its own
//! clock, COMMITs whose answer or arrival is lost, and backends that freeze and commit late.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use trellara_storage::families::chunks::{self, PartKey};
use trellara_storage::families::log::LoggedTransaction;
use trellara_storage::records::{ArchivedChangeBlock, ArchivedContent, PartRef};
use trellara_storage::{CaptureSession, Lsn, MemoryStore, Xid};

use super::executor::SimClock;
use crate::apply::{LEASE, may_claim};
use crate::failure::{Failure, Place};
use crate::ports::{
    ApplyOutcome, Applying, Checkpoint, Claim, Claimed, Clock, Group, TargetPort, TargetSession, Token,
};
use crate::testing::scripted_target::{answered, cut};

/// Defects of a target, to show that somebody notices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flaws {
    /// The last change of a transaction gets lost.
    pub drops_a_change: bool,
    /// Rows become visible without their checkpoint.
    pub leaves_the_checkpoint: bool,
    /// A COMMIT whose answer was lost is carried out twice.
    pub repeats_a_commit: bool,
    /// The checkpoint passes the last transaction of a group without its effects.
    pub skips_a_transaction: bool,
    /// No statement looks at the token.
    pub forgets_the_token: bool,
}

/// What the target holds.
#[derive(Debug, Default)]
pub(super) struct Target {
    pub(super) row: Option<Checkpoint>,
    lease_until: Duration,
    /// How often each row is there.
    pub(super) rows: BTreeMap<u64, u32>,
    /// Commit LSNs in order of effect.
    pub(super) effects: Vec<Lsn>,
    /// Transactions that came in parts.
    pub(super) chunked: usize,
    /// Commit LSNs that were passed by a recorded decision.
    pub(super) passed: BTreeSet<Lsn>,
    /// Rows whose insertion fails.
    pub(super) poison: BTreeSet<u64>,
    /// One in so many COMMITs goes wrong, zero for none.
    pub(super) trouble: u64,
    pub(super) flaws: Flaws,
    /// Tokens that changed the row, and the token that it held.
    pub(super) foreign_writes: Vec<(Token, Token)>,
    frozen: Vec<Frozen>,
}

/// A backend that has everything but its COMMIT behind it, or nothing at all.
#[derive(Debug)]
struct Frozen {
    token: Token,
    group: Group,
    work: Vec<(Lsn, Vec<u64>)>,
    holds_the_row: bool,
}

/// The target as one engine reaches it: parts of large transactions come from that engine's store.
#[derive(Clone, Debug)]
pub(super) struct SimTarget {
    state: Arc<Mutex<Target>>,
    store: Arc<MemoryStore>,
    clock: SimClock,
}

impl SimTarget {
    pub(super) fn new(store: Arc<MemoryStore>, clock: SimClock) -> Self {
        Self { state: Arc::default(), store, clock }
    }

    pub(super) fn reached_with(&self, store: Arc<MemoryStore>) -> Self {
        Self { store, ..self.clone() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, Target> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frozen backends that hold no lock go on at a moment of their own.
    pub(super) fn thaw(&self) {
        let now = self.clock.elapsed();
        self.state().thaw(now, false);
    }

    /// The rows of every transaction that is to take effect.
    fn work(&self, group: &Group) -> Vec<(Lsn, Vec<u64>)> {
        let members = group.members.iter().filter(|member| member.instead.is_none());
        members
            .map(|member| (member.transaction.id().commit_lsn, rows(&member.transaction, &self.store)))
            .collect()
    }
}

fn rows(transaction: &LoggedTransaction, store: &MemoryStore) -> Vec<u64> {
    let (id, record) = (transaction.id(), transaction.record());
    let mut rows = Vec::new();
    match &record.content {
        ArchivedContent::Inline(block) => read(block, &BTreeSet::new(), &mut rows),
        ArchivedContent::Chunked(manifest) => {
            let aborted = manifest.aborted.iter().map(|xid| xid.to_native()).collect();
            let session = CaptureSession::new(manifest.session.to_native());
            for (n, part) in (0..).zip(manifest.parts.iter()) {
                let key = PartKey {
                    flow: id.flow,
                    incarnation: id.incarnation,
                    session,
                    xid: Xid::new(record.header.xid.to_native()),
                    n,
                };
                let pinned = PartRef {
                    hash: part.hash,
                    changes: part.changes.to_native(),
                    bytes: part.bytes.to_native(),
                };
                let part =
                    chunks::get(store, key, &pinned).expect("parts are there as long as their manifest");
                read(part.block(), &aborted, &mut rows);
            }
        }
    }
    rows
}

fn read(block: &ArchivedChangeBlock, aborted: &BTreeSet<u32>, rows: &mut Vec<u64>) {
    for head in block.heads.iter().filter(|head| !aborted.contains(&head.sub_xid.to_native())) {
        let start = head.offset.to_native() as usize;
        let value = block.body.get(start..start + 8).and_then(|bytes| bytes.try_into().ok());
        rows.push(value.map_or(0, u64::from_be_bytes));
    }
}

impl Target {
    fn stands(&self, token: Token, group: &Group) -> bool {
        let fits = |row: &Checkpoint| row.token == token || self.flaws.forgets_the_token;
        self.row.as_ref().is_some_and(|row| fits(row) && row.applied == group.from)
    }

    fn commit(&mut self, token: Token, group: &Group, work: &[(Lsn, Vec<u64>)], now: Duration) {
        let skipped = usize::from(self.flaws.skips_a_transaction);
        for (commit_lsn, rows) in work.iter().take(work.len().saturating_sub(skipped)) {
            self.effects.push(*commit_lsn);
            let kept = rows.len() - usize::from(self.flaws.drops_a_change && rows.len() > 1);
            for row in rows.iter().take(kept) {
                *self.rows.entry(*row).or_default() += 1;
            }
        }
        if self.flaws.leaves_the_checkpoint && !work.is_empty() {
            return;
        }
        let in_parts = group
            .members
            .iter()
            .filter(|member| matches!(member.transaction.record().content, ArchivedContent::Chunked(_)));
        self.chunked += in_parts.count();
        let passed = group.members.iter().filter(|member| member.instead.is_some());
        self.passed.extend(passed.map(|member| member.transaction.id().commit_lsn));
        let row = self.row.as_mut().expect("the row was found");
        self.foreign_writes.extend((row.token != token).then_some((token, row.token)));
        row.applied = group.to;
        row.digest = group.members.last().map(|member| member.transaction.digest()).or(row.digest);
        self.lease_until = now + LEASE;
    }

    /// Whoever needs the row waits for the backend that holds it.
    fn thaw(&mut self, now: Duration, only_holders: bool) {
        let (thawing, frozen) = std::mem::take(&mut self.frozen)
            .into_iter()
            .partition(|frozen| frozen.holds_the_row || !only_holders);
        self.frozen = frozen;
        let thawing: Vec<Frozen> = thawing;
        for Frozen { token, group, work, holds_the_row: _ } in thawing {
            if self.stands(token, &group) {
                self.commit(token, &group, &work, now);
            }
        }
    }

    fn seen(&self, now: Duration) -> Option<Checkpoint> {
        self.row.clone().map(|row| Checkpoint { lease_live: now < self.lease_until, ..row })
    }

    fn claim(&mut self, claim: &Claim, now: Duration) -> Claimed {
        self.thaw(now, true);
        let generation = self.row.as_ref().map_or(1, |row| row.token.generation + 1);
        let token = Token { instance: claim.instance, boot: claim.boot, generation };
        let row = match (self.seen(now), &claim.initial) {
            (Some(row), _) if !may_claim(&row, claim) => return Claimed::Held(row),
            (Some(row), _) => Checkpoint { token, holder: claim.holder.clone(), ..row },
            (None, None) => return Claimed::Missing,
            (None, Some(initial)) => Checkpoint {
                incarnation: initial.incarnation,
                lineage: initial.lineage.clone(),
                applied: initial.applied,
                digest: None,
                token,
                holder: claim.holder.clone(),
                lease_live: true,
            },
        };
        let row = Checkpoint { lease_live: true, ..row };
        self.row = Some(row.clone());
        self.lease_until = now + LEASE;
        Claimed::Ours(row)
    }
}

impl TargetPort for SimTarget {
    type Session = SimSession;

    async fn connect(&self) -> Result<SimSession, Failure> {
        self.clock.dawdle(5).await;
        let trouble = self.state().trouble;
        if trouble > 0 && self.clock.one_in(trouble * 3) {
            return Err(cut(Place::TargetConnect));
        }
        Ok(SimSession(self.clone()))
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct SimSession(SimTarget);

impl TargetSession for SimSession {
    async fn claim(&mut self, claim: &Claim) -> Result<Claimed, Failure> {
        let clock = self.0.clock.clone();
        clock.dawdle(2).await;
        let claimed = self.0.state().claim(claim, clock.elapsed());
        clock.dawdle(2).await;
        Ok(claimed)
    }

    async fn checkpoint(&mut self) -> Result<Option<Checkpoint>, Failure> {
        self.0.clock.dawdle(2).await;
        Ok(self.0.state().seen(self.0.clock.elapsed()))
    }

    async fn apply(&mut self, token: Token, group: &Group, how: Applying) -> ApplyOutcome {
        let clock = self.0.clock.clone();
        clock.dawdle(4).await;
        let work = self.0.work(group);
        let outcome = self.attempt(token, group, how, work);
        // A caller that is dropped here never hears of what took effect.
        clock.dawdle(4).await;
        outcome
    }
}

impl SimSession {
    fn attempt(
        &self,
        token: Token,
        group: &Group,
        how: Applying,
        work: Vec<(Lsn, Vec<u64>)>,
    ) -> ApplyOutcome {
        let (clock, mut state) = (&self.0.clock, self.0.state());
        let now = clock.elapsed();
        let troubled = state.trouble > 0 && clock.one_in(state.trouble);
        let kind = if troubled { 1 + clock.below(4) } else { 0 };
        let group_of = || group.clone();
        if kind == 1 {
            // Frozen before its first statement.
            state.frozen.push(Frozen { token, group: group_of(), work, holds_the_row: false });
            return ApplyOutcome::InDoubt(cut(Place::Commit));
        }
        state.thaw(now, true);
        if !state.stands(token, group) {
            return ApplyOutcome::NotThere(state.seen(now));
        }
        let poisoned = work.iter().find(|(_, rows)| rows.iter().any(|row| state.poison.contains(row)));
        if let Some((commit_lsn, _)) = poisoned {
            let at =
                group.members.iter().position(|member| member.transaction.id().commit_lsn == *commit_lsn);
            let member = at.filter(|_| how != Applying::SetBased);
            return ApplyOutcome::Failed { member, failure: answered(Place::Change(0), "23505") };
        }
        match kind {
            2 => return ApplyOutcome::InDoubt(cut(Place::Commit)),
            3 => {
                state.frozen.push(Frozen { token, group: group_of(), work, holds_the_row: true });
                return ApplyOutcome::InDoubt(cut(Place::Commit));
            }
            _ => {}
        }
        if how == Applying::Check {
            return ApplyOutcome::Applied;
        }
        state.commit(token, group, &work, now);
        if kind == 4 && state.flaws.repeats_a_commit {
            state.commit(token, group, &work, now);
        }
        if kind == 4 { ApplyOutcome::InDoubt(cut(Place::Commit)) } else { ApplyOutcome::Applied }
    }
}
