//! The apply task of one flow: claims the checkpoint, goes to the position that it finds there, and applies
//! what lies ahead in the durable log, group by group, until it is told to stop or may not go on.
//!
//! Positions are the checkpoint's: what is kept in the store beside it is a cache. The one danger: going on
//! from a position that was assumed. After every doubt the task attaches anew and reads the row.

mod align;
mod attach;
mod park;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::watch;
use trellara_storage::families::flows;
use trellara_storage::families::log::LoggedTransaction;
use trellara_storage::records::{FlowPart, Outcome, QuarantineRecord, QuarantineState, TransactionHeader};
use trellara_storage::{Batch, Error, Incarnation, Progress, Timestamp};

use super::fence::Claiming;
use super::isolate::{Failed, Isolation, Verdict};
use super::outcome::{Standing, Whereabouts, standing};
use super::pause::pause;
use super::read::{self, Damage, Next, Reading, RelationDigests};
use super::{ApplyContext, ApplyExit, ApplyProgress, ApplyReport, GroupLimits};
use crate::failure::{Class, Code, ErrorFacts, ErrorKind, Failure, Place, classify};
use crate::ports::{
    ApplyOutcome, Applying, Checkpoint, Clock, FlowLog, Group, Member, TargetPort, TargetSession, Token,
};

/// The row is written at least so often, so that the lease of 30 s never runs out.
const RENEW: Duration = Duration::from_secs(10);

/// A connection without work goes back to the pool after this long.
const HOLD: Duration = Duration::from_secs(1);

/// The applied position in the store is a cache, written no more often than this.
const NOTE: Duration = Duration::from_secs(1);

/// Runs until the flow may not go on, or `stop` resolves; then the group in hand is finished first.
pub async fn run<T: TargetPort, L: FlowLog, C: Clock>(
    context: ApplyContext<T, L, C>,
    stop: impl Future<Output = ()> + Send + 'static,
    report: impl Fn(ApplyReport) + Send,
) -> ApplyExit {
    let link = context.link.clone();
    let mut driver = Driver::new(context, stop.boxed().shared(), report);
    let exit = driver.drive().await;
    // Nobody writes keepalive positions for this flow now, so capture must not wait for them.
    link.target.send_modify(|view| view.answering = false);
    exit
}

/// Why a stretch of work ended.
#[derive(Debug)]
enum Ended {
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
                Ended::Exit(ApplyExit::Failed(integrity(Place::Change(0), Code::RecordDamaged, what)))
            }
            error => Ended::Exit(ApplyExit::Store(error)),
        }
    }
}

/// The flow's row is ours, and this is where it stands.
#[derive(Debug)]
struct Attached<S> {
    /// None while there is nothing to do: the pool serves other flows.
    session: Option<S>,
    token: Token,
    incarnation: Incarnation,
    applied: Progress,
    /// Commit LSNs of this incarnation's transactions that have a quarantine record.
    recorded: BTreeSet<trellara_storage::Lsn>,
    /// When the row was last written, and when the connection was last used; monotonic.
    written: Duration,
}

struct Driver<T, L, C, R> {
    context: ApplyContext<T, L, C>,
    stop: Shared<BoxFuture<'static, ()>>,
    report: R,
    durable: watch::Receiver<Progress>,
    claiming: Claiming,
    isolation: Isolation,
    digests: RelationDigests,
    /// The group whose COMMIT got no answer.
    doubt: Option<Group>,
    /// Failures in a row.
    failures: u32,
    progress: ApplyProgress,
    noted: Option<Duration>,
}

impl<T: TargetPort, L: FlowLog, C: Clock, R: Fn(ApplyReport) + Send> Driver<T, L, C, R> {
    fn new(context: ApplyContext<T, L, C>, stop: Shared<BoxFuture<'static, ()>>, report: R) -> Self {
        Self {
            durable: context.link.durable.subscribe(),
            claiming: Claiming::new(context.take_over),
            context,
            stop,
            report,
            isolation: Isolation::new(),
            digests: RelationDigests::new(),
            doubt: None,
            failures: 0,
            progress: ApplyProgress::default(),
            noted: None,
        }
    }

    async fn drive(&mut self) -> ApplyExit {
        loop {
            let ended = match self.attach().await {
                Ok(at) => self.serve(at).await,
                Err(ended) => ended,
            };
            match ended {
                Ended::Exit(exit) => return exit,
                Ended::Reattach => {}
                Ended::Pause(failure) => {
                    self.context.link.target.send_modify(|view| view.answering = false);
                    (self.report)(ApplyReport::Retrying(failure));
                    self.failures += 1;
                    if let Err(Ended::Exit(exit)) =
                        self.sleep(pause(self.failures, self.context.clock.random())).await
                    {
                        return exit;
                    }
                }
            }
        }
    }

    async fn serve(&mut self, mut at: Attached<T::Session>) -> Ended {
        loop {
            if self.stop.clone().now_or_never().is_some() {
                return Ended::Exit(ApplyExit::Stopped);
            }
            if let Err(ended) = self.turn(&mut at).await {
                return ended;
            }
        }
    }

    async fn turn(&mut self, at: &mut Attached<T::Session>) -> Result<(), Ended> {
        let durable = *self.durable.borrow_and_update();
        let unwritten = durable.position > at.applied.position;
        if unwritten && durable.commit_lsn >= at.applied.position {
            self.advance(at, durable).await
        } else if unwritten || self.since(at.written) >= RENEW {
            // Nothing lies between: the keepalive position is carried, or the lease renewed.
            let position = durable.position.max(at.applied.position);
            let to = Progress { position, ..at.applied };
            let group = Group { from: at.applied, members: Vec::new(), to };
            self.apply(at, group, Applying::SetBased, None).await
        } else {
            self.idle(at).await
        }
    }

    /// Applies the next group, or does what was decided about the transaction that stands there.
    async fn advance(&mut self, at: &mut Attached<T::Session>, durable: Progress) -> Result<(), Ended> {
        match self.next(at, durable).await? {
            Next::Nothing => {
                let what =
                    format!("no record in the log from {} to {}", at.applied.position, durable.commit_lsn);
                let failure = integrity(Place::Change(0), Code::RecordDamaged, what);
                Err(Ended::Exit(ApplyExit::Failed(failure)))
            }
            Next::Group(transactions) => {
                let how = self.isolation.plan().how;
                self.apply(at, group(at.applied, transactions, None, durable), how, None).await
            }
            Next::Damaged(damage) => Err(self.park(at, damage.subject, damaged(damage)).await),
            Next::Recorded(record, transaction) => self.decided(at, record, transaction, durable).await,
        }
    }

    async fn next(&mut self, at: &Attached<T::Session>, durable: Progress) -> Result<Next, Ended> {
        let limits = self.context.limits;
        let transactions = self.isolation.plan().transactions.unwrap_or(usize::MAX).min(limits.transactions);
        let reading = Reading {
            flow: self.context.flow,
            incarnation: at.incarnation,
            from: at.applied.position,
            until: durable.commit_lsn,
            limits: GroupLimits { transactions, ..limits },
            recorded: at.recorded.clone(),
        };
        let mut digests = std::mem::take(&mut self.digests);
        let (digests, next) = self
            .context
            .log
            .read(move |store| {
                let next = read::next(store, &reading, &mut digests);
                (digests, next)
            })
            .await;
        self.digests = digests;
        Ok(next?)
    }

    async fn decided(
        &mut self,
        at: &mut Attached<T::Session>,
        record: Box<QuarantineRecord>,
        transaction: Result<Arc<LoggedTransaction>, Damage>,
        durable: Progress,
    ) -> Result<(), Ended> {
        let instead = match record.state {
            QuarantineState::Open => return Err(Ended::Exit(ApplyExit::Quarantined(record))),
            QuarantineState::Replaying | QuarantineState::Replayed => None,
            QuarantineState::ReplayedInPart => Some(Outcome::ReplayedInPart),
            QuarantineState::Discarded => Some(Outcome::Discarded),
            QuarantineState::Superseded => Some(Outcome::Superseded),
        };
        let transaction = match (transaction, instead) {
            (Ok(transaction), _) => transaction,
            (Err(_), Some(_)) => Arc::new(stand_in(&record)),
            (Err(damage), None) => return Err(self.park(at, damage.subject, damaged(damage)).await),
        };
        let group = group(at.applied, vec![transaction], instead, durable);
        self.isolation.suspect();
        self.apply(at, group, Applying::ChangeByChange, Some(record)).await
    }

    /// One attempt. `record` is the quarantine record of the group's only member, where it has one.
    async fn apply(
        &mut self,
        at: &mut Attached<T::Session>,
        group: Group,
        how: Applying,
        record: Option<Box<QuarantineRecord>>,
    ) -> Result<(), Ended> {
        if at.session.is_none() {
            at.session = Some(self.connect().await?);
        }
        let session = at.session.as_mut().expect("connected above");
        match session.apply(at.token, &group, how).await {
            ApplyOutcome::Applied => self.committed(at, &group, record).await,
            ApplyOutcome::NotThere(row) => match standing(at.token, &group, row) {
                Standing::Lost => Err(lost()),
                Standing::Taken(row) => Err(Ended::Exit(ApplyExit::Fenced(Box::new(row)))),
                Standing::Ours(Whereabouts::After) => self.committed(at, &group, record).await,
                Standing::Ours(Whereabouts::Elsewhere(_)) => {
                    self.isolation = Isolation::new();
                    Err(Ended::Reattach)
                }
                Standing::Ours(Whereabouts::Before) => Err(Ended::Pause(contradiction())),
            },
            ApplyOutcome::InDoubt(failure) => {
                self.doubt = Some(group);
                Err(Ended::Pause(failure))
            }
            ApplyOutcome::Failed { member, failure } => {
                let failed = Failed { size: group.members.len(), how, member, failure };
                self.failed(at, &group, failed).await
            }
        }
    }

    async fn failed(
        &mut self,
        at: &mut Attached<T::Session>,
        group: &Group,
        failed: Failed,
    ) -> Result<(), Ended> {
        match self.isolation.failed(failed, self.context.clock.elapsed()) {
            Verdict::Again => Ok(()),
            Verdict::Reconnect => Err(Ended::Reattach),
            Verdict::Pause(failure) => Err(Ended::Pause(failure)),
            Verdict::End(failure) => Err(beyond_apply(failure)),
            Verdict::Park(failure) => {
                let only = group.members.first().expect("only a transaction is parked");
                Err(self.park(at, read::subject(&only.transaction), failure).await)
            }
        }
    }

    /// The target stands at the group's end.
    async fn committed(
        &mut self,
        at: &mut Attached<T::Session>,
        group: &Group,
        record: Option<Box<QuarantineRecord>>,
    ) -> Result<(), Ended> {
        at.applied = group.to;
        at.written = self.context.clock.elapsed();
        self.failures = 0;
        self.count(group);
        self.context.link.target.send_modify(|view| {
            view.answering = true;
            if let Some(row) = &mut view.checkpoint {
                row.applied = group.to;
                row.digest = group.members.last().map(|member| member.transaction.digest()).or(row.digest);
            }
        });
        if let Some(record) = record {
            self.resolved(at, record).await?;
        }
        (self.report)(ApplyReport::Progress(self.progress));
        if self.noted.is_none_or(|noted| self.since(noted) >= NOTE) {
            self.note(at.applied).await?;
        }
        Ok(())
    }

    fn count(&mut self, group: &Group) {
        if !group.members.is_empty() {
            self.isolation.applied(group.members.len());
        }
        self.progress.applied = group.to;
        self.progress.at = self.context.clock.now();
        for member in &group.members {
            let header = &member.transaction.record().header;
            self.progress.transactions += 1;
            self.progress.changes += header.changes.to_native();
            self.progress.commit_time = Timestamp::from_unix_micros(header.commit_time.to_native());
        }
    }

    /// Notes the applied position in the store, without an fsync of its own.
    async fn note(&mut self, applied: Progress) -> Result<(), Ended> {
        let mut batch = Batch::new();
        flows::put(&mut batch, self.context.flow, FlowPart::Applied, &applied);
        self.context.log.submit_buffered(batch).await?;
        self.noted = Some(self.context.clock.elapsed());
        Ok(())
    }

    /// Waits for work, for the next renewal, or for the end.
    async fn idle(&mut self, at: &mut Attached<T::Session>) -> Result<(), Ended> {
        enum Woken {
            Stop,
            Work,
            Time,
        }
        let unused = self.since(at.written);
        if unused >= HOLD && at.session.take().is_some() {
            self.note(at.applied).await?;
        }
        let limit = if at.session.is_some() { HOLD } else { RENEW };
        let woken = tokio::select! {
            biased;
            () = self.stop.clone() => Woken::Stop,
            _ = self.durable.changed() => Woken::Work,
            () = self.context.clock.sleep(limit.saturating_sub(unused)) => Woken::Time,
        };
        match woken {
            Woken::Stop => Err(Ended::Exit(ApplyExit::Stopped)),
            Woken::Work | Woken::Time => Ok(()),
        }
    }

    async fn sleep(&self, duration: Duration) -> Result<(), Ended> {
        tokio::select! {
            biased;
            () = self.stop.clone() => Err(Ended::Exit(ApplyExit::Stopped)),
            () = self.context.clock.sleep(duration) => Ok(()),
        }
    }

    fn since(&self, moment: Duration) -> Duration {
        self.context.clock.elapsed().saturating_sub(moment)
    }
}

/// A group from where the target stands. When it reaches the newest durable transaction it carries the
/// keepalive position that is durable behind it.
fn group(
    from: Progress,
    transactions: Vec<Arc<LoggedTransaction>>,
    instead: Option<Outcome>,
    durable: Progress,
) -> Group {
    let to = match transactions.last() {
        Some(last) if last.id().commit_lsn == durable.commit_lsn => durable,
        Some(last) => Progress { commit_lsn: last.id().commit_lsn, position: last.end_lsn() },
        None => from,
    };
    let members = transactions.into_iter().map(|transaction| Member { transaction, instead }).collect();
    Group { from, members, to }
}

fn stand_in(record: &QuarantineRecord) -> LoggedTransaction {
    let header = TransactionHeader {
        xid: record.transaction.xid.get(),
        commit_lsn: record.transaction.commit_lsn.get(),
        end_lsn: record.end_lsn.get(),
        commit_time: record.commit_time.unix_micros(),
        received: record.commit_time.unix_micros(),
        digest: *record.digest.bytes(),
        changes: 0,
        bytes: 0,
        origin: None,
    };
    LoggedTransaction::stand_in(record.transaction.flow, record.transaction.incarnation, header)
}

/// A failure that apply cannot do anything about.
fn beyond_apply(failure: Failure) -> Ended {
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

fn lost() -> Ended {
    let what = "the flow's checkpoint row is gone from the target".to_owned();
    Ended::Exit(ApplyExit::LineageLost { code: Code::TargetLost, what })
}

/// The row is ours and where it should be, and yet was not found: look again.
fn contradiction() -> Failure {
    found(Place::Checkpoint, Code::Contention, "checkpoint row was not found where it stands".to_owned())
}

fn damaged(damage: Damage) -> Failure {
    integrity(Place::Change(0), damage.code, damage.what)
}

fn integrity(place: Place, code: Code, what: String) -> Failure {
    found(place, code, what)
}

fn found(place: Place, code: Code, message: String) -> Failure {
    classify(place, ErrorFacts { kind: Some(ErrorKind::Finding(code)), message, ..ErrorFacts::default() })
}

/// What capture is told of the target.
fn view(row: Option<Checkpoint>) -> crate::flow::TargetView {
    crate::flow::TargetView { read: true, checkpoint: row, answering: true }
}

#[cfg(test)]
mod tests;
