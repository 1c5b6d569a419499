//! One attempt to apply a group, and what its outcome leads to.

use std::sync::Arc;

use trellara_storage::families::flows;
use trellara_storage::families::log::LoggedTransaction;
use trellara_storage::records::{FlowPart, Outcome, QuarantineRecord, TransactionHeader};
use trellara_storage::{Batch, Progress, Timestamp};

use super::ended::{beyond_apply, contradiction, lost};
use super::{Attached, Driver, Ended, view};
use crate::apply::isolate::{Failed, Isolation, Verdict};
use crate::apply::outcome::{Standing, Whereabouts, standing};
use crate::apply::{ApplyExit, ApplyReport, read};
use crate::ports::{ApplyOutcome, Applying, Clock, FlowLog, Group, Member, TargetPort, TargetSession};

/// The applied position in the store is a cache, written no more often than this.
const NOTE: std::time::Duration = std::time::Duration::from_secs(1);

impl<T: TargetPort, L: FlowLog, C: Clock, R: Fn(ApplyReport) + Send> Driver<T, L, C, R> {
    /// One attempt. `record` is the quarantine record of the group's only member, where it has one.
    pub(super) async fn apply(
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
                Standing::Taken(row) => {
                    self.context.link.target.send_replace(view(Some(row.clone())));
                    Err(Ended::Exit(ApplyExit::Fenced(Box::new(row))))
                }
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

    pub(super) async fn failed(
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
                if only.instead.is_some() {
                    // Nothing of it was to take effect: what failed is the engine's own bookkeeping.
                    return Err(Ended::Exit(ApplyExit::Failed(failure)));
                }
                Err(self.park(at.applied, read::subject(&only.transaction), failure).await)
            }
        }
    }

    /// The target stands at the group's end.
    pub(super) async fn committed(
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
            self.resolved(at.applied, record).await?;
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
    pub(super) async fn note(&mut self, applied: Progress) -> Result<(), Ended> {
        let mut batch = Batch::new();
        flows::put(&mut batch, self.context.flow, FlowPart::Applied, &applied);
        self.context.log.submit_buffered(batch).await?;
        self.noted = Some(self.context.clock.elapsed());
        Ok(())
    }
}

/// A group from where the target stands. When it reaches the newest durable transaction it carries the
/// keepalive position that is durable behind it.
pub(super) fn group(
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

pub(super) fn stand_in(record: &QuarantineRecord) -> LoggedTransaction {
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
