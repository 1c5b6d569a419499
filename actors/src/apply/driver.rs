//! The apply task of one flow: claims the checkpoint, goes to the position that it finds there, and applies
//! what lies ahead in the durable log, group by group, until it is told to stop or may not go on.
//!
//! Positions are the checkpoint's: what is kept in the store beside it is a cache. The one danger: going on
//! from a position that was assumed. After every doubt the task attaches anew and reads the row.

mod align;
mod attach;
mod attempt;
mod ended;
mod park;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ended::{Ended, damaged, found};
use tokio::sync::watch;
use trellara_storage::families::log::LoggedTransaction;
use trellara_storage::records::{Outcome, QuarantineRecord, QuarantineState};
use trellara_storage::{Incarnation, Lsn, Progress, TransactionDigest};

use super::fence::Claiming;
use super::isolate::Isolation;
use super::pause::pause;
use super::read::{self, Damage, Next, Reading, RelationDigests};
use super::{ApplyContext, ApplyExit, ApplyProgress, ApplyReport, GroupLimits};
use crate::failure::{Code, Place};
use crate::flow::TargetView;
use crate::ports::{Applying, Checkpoint, Clock, FlowLog, Group, TargetPort, Token};

/// The row is written at least so often, so that the lease of 30 s never runs out.
const RENEW: Duration = Duration::from_secs(10);

/// A connection without work goes back to the pool after this long.
const HOLD: Duration = Duration::from_secs(1);

/// Runs until the flow may not go on, or `stop` turns true or loses its sender; then the group in hand is
/// finished first.
#[expect(clippy::manual_async_fn, reason = "Send is proven here, where the ports are still abstract")]
pub fn run<T: TargetPort, L: FlowLog, C: Clock>(
    context: ApplyContext<T, L, C>,
    stop: watch::Receiver<bool>,
    report: impl Fn(ApplyReport) + Send,
) -> impl Future<Output = ApplyExit> + Send {
    async move {
        let link = context.link.clone();
        let mut driver = Driver::new(context, stop, report);
        let exit = driver.drive().await;
        // Nobody writes keepalive positions for this flow now, so capture must not wait for them. Of a row
        // that is another engine's nothing is known any more.
        link.target.send_modify(|view| match exit {
            ApplyExit::Fenced(_) => *view = TargetView::default(),
            ApplyExit::Stopped
            | ApplyExit::Quarantined(_)
            | ApplyExit::LineageLost { .. }
            | ApplyExit::Failed(_)
            | ApplyExit::Store(_) => view.answering = false,
        });
        exit
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
    /// The transaction that the checkpoint named when it was claimed, until the log was seen to hold it.
    unproven: Option<(Lsn, TransactionDigest)>,
    /// Commit LSNs of this incarnation's transactions that have a quarantine record.
    recorded: BTreeSet<Lsn>,
    /// When the row was last written, and when the connection was last used; monotonic.
    written: Duration,
}

struct Driver<T, L, C, R> {
    context: ApplyContext<T, L, C>,
    stop: watch::Receiver<bool>,
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
    fn new(context: ApplyContext<T, L, C>, stop: watch::Receiver<bool>, report: R) -> Self {
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
            if *self.stop.borrow() || self.stop.has_changed().is_err() {
                return Ended::Exit(ApplyExit::Stopped);
            }
            if let Err(ended) = self.turn(&mut at).await {
                return ended;
            }
        }
    }

    async fn turn(&mut self, at: &mut Attached<T::Session>) -> Result<(), Ended> {
        let durable = *self.durable.borrow_and_update();
        if let Some(named) = at.unproven.filter(|(commit_lsn, _)| durable.covers(*commit_lsn)) {
            self.same_history(at.incarnation, named).await?;
            at.unproven = None;
        }
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
                let failure = found(Place::Change(0), Code::RecordDamaged, what);
                Err(Ended::Exit(ApplyExit::Failed(failure)))
            }
            Next::Group(transactions) => {
                let how = self.isolation.plan().how;
                self.apply(at, attempt::group(at.applied, transactions, None, durable), how, None).await
            }
            Next::Damaged(damage) => Err(self.park(at.applied, damage.subject, damaged(damage)).await),
            Next::Recorded(record, transaction) => self.decided(at, record, transaction, durable).await,
        }
    }

    async fn next(&mut self, at: &mut Attached<T::Session>, durable: Progress) -> Result<Next, Ended> {
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
            (Err(_), Some(_)) => Arc::new(attempt::stand_in(&record)),
            (Err(damage), None) => return Err(self.park(at.applied, damage.subject, damaged(damage)).await),
        };
        let group = attempt::group(at.applied, vec![transaction], instead, durable);
        self.isolation.suspect();
        self.apply(at, group, Applying::ChangeByChange, Some(record)).await
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
            () = stopped(&mut self.stop) => Woken::Stop,
            _ = self.durable.changed() => Woken::Work,
            () = self.context.clock.sleep(limit.saturating_sub(unused)) => Woken::Time,
        };
        match woken {
            Woken::Stop => Err(Ended::Exit(ApplyExit::Stopped)),
            Woken::Work | Woken::Time => Ok(()),
        }
    }

    async fn sleep(&mut self, duration: Duration) -> Result<(), Ended> {
        tokio::select! {
            biased;
            () = stopped(&mut self.stop) => Err(Ended::Exit(ApplyExit::Stopped)),
            () = self.context.clock.sleep(duration) => Ok(()),
        }
    }

    fn since(&self, moment: Duration) -> Duration {
        self.context.clock.elapsed().saturating_sub(moment)
    }
}

/// Resolves once the task is told to stop, or nobody is left to tell it.
///
/// # Cancel safety
/// Dropping the future loses nothing.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// What capture is told of the target.
fn view(row: Option<Checkpoint>) -> TargetView {
    TargetView { read: true, checkpoint: row, answering: true }
}

#[cfg(test)]
mod tests;
