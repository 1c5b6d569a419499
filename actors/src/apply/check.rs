//! Would a parked transaction apply now? Tried at the target and rolled back, without claiming anything:
//! the token in the row is used, if it is this instance's.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use trellara_storage::families::log::{self, LoggedTransaction};
use trellara_storage::{Error, InstanceId, Progress, TransactionId};

use crate::failure::{Code, Failure};
use crate::ports::{ApplyOutcome, Applying, Checkpoint, FlowLog, Group, Member, TargetPort, TargetSession};

/// What a try would have come to.
#[derive(Clone, Debug)]
pub enum Checked {
    WouldApply,
    WouldFail(Failure),
    /// It is not what comes next at the target.
    NotNext(Progress),
    /// Another engine applies this flow.
    Fenced(Box<Checkpoint>),
    /// The checkpoint row is gone.
    TargetLost,
    /// The log does not hold the transaction.
    NotInLog,
    /// The target did not answer the question.
    Unanswered(Failure),
}

/// Tries the transaction as `replay` would, and rolls it back. The flow's apply task must not be running.
///
/// # Errors
/// Those of reading the log; `Corruption` when the record is damaged.
pub fn check<'a, T: TargetPort, L: FlowLog>(
    target: &'a T,
    log: &'a L,
    instance: InstanceId,
    transaction: TransactionId,
) -> BoxFuture<'a, Result<Checked, Error>> {
    let TransactionId { flow, incarnation, commit_lsn, .. } = transaction;
    // Boxed, so that the compiler need not look through the whole future to see that it may be sent.
    async move {
        let found = log.read(move |store| log::get(store, flow, incarnation, commit_lsn)).await?;
        let Some(found) = found else { return Ok(Checked::NotInLog) };
        Ok(attempt(target, instance, Arc::new(found)).await.unwrap_or_else(Checked::Unanswered))
    }
    .boxed()
}

async fn attempt<T: TargetPort>(
    target: &T,
    instance: InstanceId,
    transaction: Arc<LoggedTransaction>,
) -> Result<Checked, Failure> {
    let mut session = target.connect().await?;
    let Some(row) = session.checkpoint().await? else { return Ok(Checked::TargetLost) };
    if row.token.instance != instance {
        return Ok(Checked::Fenced(Box::new(row)));
    }
    let id = transaction.id();
    if row.incarnation != id.incarnation || row.applied.covers(id.commit_lsn) {
        return Ok(Checked::NotNext(row.applied));
    }
    let to = Progress { commit_lsn: id.commit_lsn, position: transaction.end_lsn() };
    let group = Group { from: row.applied, members: vec![Member { transaction, instead: None }], to };
    let mut outcome = session.apply(row.token, &group, Applying::Check).await;
    if matches!(&outcome, ApplyOutcome::Failed { failure, .. } if failure.code == Code::RowMissing) {
        // Believed only after a second look.
        outcome = session.apply(row.token, &group, Applying::Check).await;
    }
    Ok(match outcome {
        ApplyOutcome::Applied => Checked::WouldApply,
        ApplyOutcome::Failed { failure, .. } => Checked::WouldFail(failure),
        ApplyOutcome::NotThere(Some(row)) => Checked::NotNext(row.applied),
        ApplyOutcome::NotThere(None) => Checked::TargetLost,
        ApplyOutcome::InDoubt(failure) => Checked::Unanswered(failure),
    })
}
