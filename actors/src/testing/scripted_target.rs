//! A target that keeps the rules of the real one (fenced row, whole groups, row locks) and fails on demand.
//! What took effect is a list of commit LSNs, so that a second effect of a transaction shows.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use trellara_storage::Lsn;
use trellara_storage::records::Outcome;

use crate::apply::may_claim;
use crate::failure::{ErrorFacts, ErrorKind, Failure, Place, classify};
use crate::ports::{
    ApplyOutcome, Applying, Checkpoint, Claim, Claimed, Group, TargetPort, TargetSession, Token,
};

/// What happens to one attempt to apply.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Rolled back for certain.
    Fails(Failure),
    /// COMMIT arrived, its answer did not.
    AnswerLost,
    /// COMMIT did not arrive.
    CommitLost,
    /// The backend was frozen before COMMIT and goes on when somebody next asks for its row lock.
    CommitLate,
}

/// The target's content and what is going to happen to it.
#[derive(Debug, Default)]
pub struct Content {
    pub row: Option<Checkpoint>,
    /// Commit LSNs in order of effect.
    pub effects: Vec<Lsn>,
    pub outcomes: Vec<(Lsn, Outcome)>,
    /// Transactions that fail, and how.
    pub poison: BTreeMap<Lsn, Failure>,
    /// Consumed by attempts to apply, connect and claim, none for nothing special.
    pub faults: VecDeque<Option<Fault>>,
    pub refusals: VecDeque<Failure>,
    pub attempts: usize,
    /// Plants a target without row locks: a late COMMIT lands whatever happened since. Shows that an oracle
    /// notices.
    pub unlocked: bool,
    late: Option<(Token, Group)>,
}

impl Content {
    /// Whoever waits for the row lock meets what a frozen backend did first.
    fn land_late(&mut self) {
        if self.unlocked {
            return;
        }
        if let Some((token, group)) = self.late.take() {
            self.commit(token, &group);
        }
    }

    fn stands(&self, token: Token, group: &Group) -> bool {
        self.row.as_ref().is_some_and(|row| row.token == token && row.applied == group.from)
    }

    fn commit(&mut self, token: Token, group: &Group) {
        assert!(self.stands(token, group), "the row was locked all the time");
        for member in &group.members {
            let commit_lsn = member.transaction.id().commit_lsn;
            match member.instead {
                None => self.effects.push(commit_lsn),
                Some(outcome) => self.outcomes.push((commit_lsn, outcome)),
            }
        }
        let row = self.row.as_mut().expect("stands there");
        row.applied = group.to;
        row.digest = group.members.last().map(|member| member.transaction.digest()).or(row.digest);
        row.lease_live = true;
    }

    fn claim(&mut self, claim: &Claim) -> Claimed {
        self.land_late();
        let generation = self.row.as_ref().map_or(1, |row| row.token.generation + 1);
        let token = Token { instance: claim.instance, boot: claim.boot, generation };
        match (&mut self.row, &claim.initial) {
            (Some(row), _) if !may_claim(row, claim) => return Claimed::Held(row.clone()),
            (Some(row), _) => {
                row.token = token;
                row.holder.clone_from(&claim.holder);
                row.lease_live = true;
            }
            (None, None) => return Claimed::Missing,
            (row @ None, Some(initial)) => {
                *row = Some(Checkpoint {
                    incarnation: initial.incarnation,
                    lineage: initial.lineage.clone(),
                    applied: initial.applied,
                    digest: None,
                    token,
                    holder: claim.holder.clone(),
                    lease_live: true,
                });
            }
        }
        Claimed::Ours(self.row.clone().expect("claimed above"))
    }

    fn apply(&mut self, token: Token, group: &Group, how: Applying) -> ApplyOutcome {
        self.attempts += 1;
        self.land_late();
        if !self.stands(token, group) {
            return ApplyOutcome::NotThere(self.row.clone());
        }
        let fault = self.faults.pop_front().flatten();
        if let Some(Fault::Fails(failure)) = fault {
            return ApplyOutcome::Failed { member: None, failure };
        }
        let poisoned = group.members.iter().position(|member| {
            member.instead.is_none() && self.poison.contains_key(&member.transaction.id().commit_lsn)
        });
        if let Some(member) = poisoned {
            let failure = self.poison[&group.members[member].transaction.id().commit_lsn].clone();
            let named = (how != Applying::SetBased).then_some(member);
            return ApplyOutcome::Failed { member: named, failure };
        }
        match (how, fault) {
            (Applying::Check, _) => return ApplyOutcome::Applied,
            (_, Some(Fault::CommitLost)) => return ApplyOutcome::InDoubt(cut(Place::Commit)),
            (_, Some(Fault::CommitLate)) => {
                self.late = Some((token, group.clone()));
                return ApplyOutcome::InDoubt(cut(Place::Commit));
            }
            (_, Some(Fault::AnswerLost)) => {
                self.commit(token, group);
                return ApplyOutcome::InDoubt(cut(Place::Commit));
            }
            (Applying::SetBased | Applying::ChangeByChange, Some(Fault::Fails(_)) | None) => {}
        }
        self.commit(token, group);
        if let Some((_, late)) = self.late.take() {
            self.effects.extend(late.members.iter().map(|member| member.transaction.id().commit_lsn));
        }
        ApplyOutcome::Applied
    }
}

/// Shared by every connection to it.
#[derive(Clone, Debug, Default)]
pub struct ScriptedTarget(Arc<Mutex<Content>>);

impl ScriptedTarget {
    pub fn new() -> Self {
        Self::default()
    }

    /// # Panics
    /// When a holder panicked before.
    pub fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().expect("no holder panics")
    }
}

impl TargetPort for ScriptedTarget {
    type Session = ScriptedSession;

    async fn connect(&self) -> Result<ScriptedSession, Failure> {
        tokio::task::yield_now().await;
        match self.content().refusals.pop_front() {
            Some(failure) => Err(failure),
            None => Ok(ScriptedSession(self.clone())),
        }
    }
}

/// One connection.
#[derive(Debug)]
pub struct ScriptedSession(ScriptedTarget);

impl TargetSession for ScriptedSession {
    async fn claim(&mut self, claim: &Claim) -> Result<Claimed, Failure> {
        tokio::task::yield_now().await;
        let claimed = self.0.content().claim(claim);
        tokio::task::yield_now().await;
        Ok(claimed)
    }

    async fn checkpoint(&mut self) -> Result<Option<Checkpoint>, Failure> {
        tokio::task::yield_now().await;
        Ok(self.0.content().row.clone())
    }

    async fn apply(&mut self, token: Token, group: &Group, how: Applying) -> ApplyOutcome {
        tokio::task::yield_now().await;
        let outcome = self.0.content().apply(token, group, how);
        // A caller that is dropped here never hears of what took effect.
        tokio::task::yield_now().await;
        outcome
    }
}

/// A connection that broke.
pub fn cut(place: Place) -> Failure {
    classify(place, ErrorFacts { kind: Some(ErrorKind::ConnectionLost), ..ErrorFacts::default() })
}

/// An error of the server at this place.
pub fn answered(place: Place, sqlstate: &str) -> Failure {
    let kind = Some(ErrorKind::Database { sqlstate: sqlstate.to_owned() });
    classify(place, ErrorFacts { kind, ..ErrorFacts::default() })
}
