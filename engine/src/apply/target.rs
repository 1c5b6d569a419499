//! The target port: leases a connection for each operation and brings whole groups over (I3, I4, I11).
//!
//! The one danger: believing or repeating a COMMIT whose answer was lost. Everything before COMMIT is
//! rolled back for certain when it fails; an unanswered COMMIT is reported as in doubt and never judged.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::{Client, Error, Statement};
use trellara_actors::failure::{Class, Code, Failure, Place, classify};
use trellara_actors::ports::{
    ApplyOutcome, Applying, Checkpoint, Claim, Claimed, FlowLog, Group, TargetPort, TargetSession, Token,
};
use trellara_storage::FlowName;
use trellara_storage::records::ArchivedContent;

use super::applier::{Applier, Means};
use super::checkpoint::{self, lsn};
use super::flight::{Expects, Note, within};
use super::judge;
use super::relations::Relations;
use super::session;
use super::stop::{Cause, Stop};
use crate::postgres::failure;
use crate::postgres::pool::{Connection, Lease, Load, Pool};
use crate::settings::{FlowSettings, TargetSettings};

/// How long one short statement, or COMMIT with its fsync and synchronous standbys, may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// One flow's way to its target.
#[derive(Debug)]
pub struct PgTarget<L> {
    shared: Arc<Shared<L>>,
}

/// Leases a connection per operation; several operations of a flow meet the same one as long as it is idle.
#[derive(Debug)]
pub struct PgTargetSession<L> {
    shared: Arc<Shared<L>>,
}

#[derive(Debug)]
struct Shared<L> {
    flow: FlowName,
    settings: TargetSettings,
    opening: String,
    relations: Relations<L>,
    pool: Arc<Pool>,
}

/// How the statements of a group ended, before COMMIT.
enum Ended {
    Ready,
    Stopped(Box<Stop>),
}

impl<L: FlowLog> PgTarget<L> {
    /// `pool` is the one for `settings.target`.
    pub fn new(settings: &FlowSettings, log: L, pool: Arc<Pool>) -> Self {
        Self {
            shared: Arc::new(Shared {
                flow: settings.name.clone(),
                settings: settings.target.clone(),
                opening: session::opening(&settings.target),
                relations: Relations::new(settings, log),
                pool,
            }),
        }
    }
}

impl<L: FlowLog> PgTarget<L> {
    pub fn pool(&self) -> &Arc<Pool> {
        &self.shared.pool
    }

    /// Drops checkpoint and outcomes of the flow, for its removal.
    ///
    /// # Errors
    /// The target cannot be reached, or does not let us.
    pub async fn forget(&self) -> Result<(), Failure> {
        let mut lease = self.shared.lease(Load::Ordinary).await?;
        let forgetting = checkpoint::forget(&lease.connection().client, &self.shared.flow);
        answered(Place::Checkpoint, forgetting).await?;
        lease.give_back();
        Ok(())
    }
}

impl<L: FlowLog> TargetPort for PgTarget<L> {
    type Session = PgTargetSession<L>;

    async fn connect(&self) -> Result<Self::Session, Failure> {
        let lease = self.shared.lease(Load::Ordinary).await?;
        lease.give_back();
        Ok(PgTargetSession { shared: Arc::clone(&self.shared) })
    }
}

impl<L: FlowLog> TargetSession for PgTargetSession<L> {
    async fn claim(&mut self, claim: &Claim) -> Result<Claimed, Failure> {
        let shared = &self.shared;
        let mut lease = shared.lease(Load::Ordinary).await?;
        let connection = lease.connection();
        if !connection.schema_ready {
            answered(Place::Checkpoint, checkpoint::ensure_schema(&connection.client)).await?;
            connection.schema_ready = true;
        }
        let lease_time = shared.settings.lease;
        let claiming = checkpoint::claim(&connection.client, &shared.flow, claim, lease_time);
        let claimed = answered(Place::Checkpoint, claiming).await.map_err(|failure| shared.seen(failure))?;
        lease.give_back();
        Ok(claimed)
    }

    async fn checkpoint(&mut self) -> Result<Option<Checkpoint>, Failure> {
        self.shared.checkpoint(false).await
    }

    async fn apply(&mut self, token: Token, group: &Group, how: Applying) -> ApplyOutcome {
        let shared = &self.shared;
        if how != Applying::SetBased {
            shared.relations.forget();
        }
        shared.attempt(token, group, how).await
    }
}

impl<L: FlowLog> Shared<L> {
    async fn lease(&self, load: Load) -> Result<Lease, Failure> {
        self.pool.lease(&self.flow, load).await
    }

    async fn checkpoint(&self, lock: bool) -> Result<Option<Checkpoint>, Failure> {
        let mut lease = self.lease(Load::Ordinary).await?;
        let reading = checkpoint::read(&lease.connection().client, &self.flow, lock);
        let found = answered(Place::Checkpoint, reading).await.map_err(|failure| self.seen(failure))?;
        lease.give_back();
        Ok(found)
    }

    /// After a failover every pooled connection leads to a server that cannot be written to.
    fn seen(&self, failure: Failure) -> Failure {
        if failure.code == Code::ReadOnly {
            self.pool.forget();
        }
        failure
    }

    async fn attempt(&self, token: Token, group: &Group, how: Applying) -> ApplyOutcome {
        let mut lease = match self.lease(load(group, how)).await {
            Ok(lease) => lease,
            Err(failure) => return ApplyOutcome::Failed { member: None, failure },
        };
        match self.statements(lease.connection(), token, group, how).await {
            Ended::Ready if how == Applying::Check => {
                roll_back(lease).await;
                ApplyOutcome::Applied
            }
            Ended::Ready => self.commit(lease, group).await,
            Ended::Stopped(stop) => self.stopped(lease, *stop).await,
        }
    }

    /// Everything between BEGIN and COMMIT, all answers taken.
    async fn statements(
        &self,
        connection: &mut Connection,
        token: Token,
        group: &Group,
        how: Applying,
    ) -> Ended {
        let Connection { client, prepared, .. } = connection;
        let advance = match prepared.get(checkpoint::ADVANCE) {
            Some(statement) => Ok(statement),
            None => within(prepared.prepare(client, checkpoint::ADVANCE)).await,
        };
        let advance = match advance {
            Ok(advance) => advance,
            Err(cause) => return Ended::Stopped(Box::new(outside(Place::Checkpoint, cause))),
        };
        let means = Means {
            flow: &self.flow,
            settings: &self.settings,
            relations: &self.relations,
            client,
            prepared,
        };
        let mut applier = Applier::new(means, how);
        match self.send_all(&mut applier, client, advance, token, group).await {
            Ok(()) => Ended::Ready,
            Err(stop) => Ended::Stopped(Box::new(applier.flight().first_failure(stop).await)),
        }
    }

    async fn send_all<'a>(
        &self,
        applier: &mut Applier<'a, L>,
        client: &'a Client,
        advance: Statement,
        token: Token,
        group: &Group,
    ) -> Result<(), Stop> {
        let note = |place, expects| Note { place, member: None, expects, change: None };
        let opening = note(Place::SessionSetup, Expects::Anything);
        applier.flight().command(opening, self.opening.clone()).await?;
        let fence = note(Place::Checkpoint, Expects::Checkpoint);
        let moving =
            move_checkpoint(client, advance, self.flow.to_string(), token, group, self.settings.lease);
        applier.flight().send(fence, 0, Box::pin(moving)).await?;
        for (index, member) in group.members.iter().enumerate() {
            applier.member(index, member).await?;
        }
        applier.finish().await
    }

    async fn commit(&self, mut lease: Lease, group: &Group) -> ApplyOutcome {
        fail::fail_point!("target_before_commit");
        let committing = lease.connection().client.batch_execute("COMMIT");
        let error = match timeout(PATIENCE, committing).await {
            Ok(Ok(())) => {
                fail::fail_point!("target_after_commit");
                lease.give_back();
                return ApplyOutcome::Applied;
            }
            Ok(Err(error)) => error,
            Err(_) => return ApplyOutcome::InDoubt(classify(Place::Commit, failure::timed_out("COMMIT"))),
        };
        let failure = failure::failure(Place::Commit, &error);
        // A session that was ended with the answer may have committed before.
        if error.as_db_error().is_none() || failure::ended_session(&error) {
            return ApplyOutcome::InDoubt(failure);
        }
        lease.give_back();
        let member = (group.members.len() == 1).then_some(0);
        ApplyOutcome::Failed { member, failure }
    }

    async fn stopped(&self, mut lease: Lease, stop: Stop) -> ApplyOutcome {
        if matches!(stop.place, Place::Change(_)) {
            self.relations.forget();
        }
        let usable = usable_after(&stop) && rolled_back(&mut lease).await;
        if matches!(stop.cause, Cause::NotThere) {
            if usable {
                lease.give_back();
            }
            return match self.checkpoint(true).await {
                Ok(found) => ApplyOutcome::NotThere(found),
                Err(failure) => ApplyOutcome::Failed { member: None, failure },
            };
        }
        if !usable {
            let failure = self.seen(judge::alone(&stop));
            return ApplyOutcome::Failed { member: stop.member, failure };
        }
        let connection = lease.connection();
        let version = connection.server_version.clone();
        let failure = judge::with_target(&stop, &connection.client, &self.flow, &version).await;
        if expected(&failure) {
            lease.give_back();
        }
        ApplyOutcome::Failed { member: stop.member, failure: self.seen(failure) }
    }
}

/// First statement of the group: moves the checkpoint if it is ours and where we think it is.
fn move_checkpoint<'a>(
    client: &'a Client,
    statement: Statement,
    flow: String,
    token: Token,
    group: &Group,
    lease: Duration,
) -> impl Future<Output = Result<u64, Error>> + Send + use<'a> {
    let (from, to) = (group.from, group.to);
    let last = group.members.last().map(|member| &member.transaction);
    let digest = last.map(|transaction| transaction.digest().to_string());
    async move {
        client
            .execute(
                &statement,
                &[
                    &flow,
                    &token.instance.to_string(),
                    &token.boot.cast_signed(),
                    &token.generation.cast_signed(),
                    &lsn(from.commit_lsn),
                    &lsn(to.commit_lsn),
                    &lsn(to.position),
                    &digest,
                    &lease.as_secs_f64(),
                    &lsn(from.position),
                ],
            )
            .await
    }
}

/// Splits and huge transactions are kept to their share of the pool.
fn load(group: &Group, how: Applying) -> Load {
    let chunked = group
        .members
        .iter()
        .any(|member| matches!(member.transaction.record().content, ArchivedContent::Chunked(_)));
    if chunked || how != Applying::SetBased { Load::Heavy } else { Load::Ordinary }
}

fn outside(place: Place, cause: Cause) -> Stop {
    Stop { place, member: None, cause, change: None }
}

/// Whether the session can still be talked to.
fn usable_after(stop: &Stop) -> bool {
    match &stop.cause {
        Cause::Sql(error) => error.as_db_error().is_some() && !failure::ended_session(error),
        Cause::Silence => false,
        Cause::NotThere
        | Cause::Rows { .. }
        | Cause::Misfit(_)
        | Cause::Breach(_)
        | Cause::Constraint(_)
        | Cause::Store(_)
        | Cause::RelationMissing => true,
    }
}

/// After what a change did wrong the session is as good as before; after anything else it is closed.
fn expected(failure: &Failure) -> bool {
    match failure.class {
        Class::RowData | Class::SchemaContract | Class::Integrity => true,
        Class::Transient
        | Class::Endpoint(_)
        | Class::Lineage
        | Class::Fence
        | Class::Defect
        | Class::Unknown => false,
    }
}

/// Dropping the lease instead closes the connection, which rolls back as well.
async fn roll_back(mut lease: Lease) {
    if rolled_back(&mut lease).await {
        lease.give_back();
    }
}

async fn rolled_back(lease: &mut Lease) -> bool {
    let rolling = lease.connection().client.batch_execute("ROLLBACK");
    matches!(timeout(PATIENCE, rolling).await, Ok(Ok(())))
}

async fn answered<T>(
    place: Place,
    asked: impl Future<Output = Result<T, Error>> + Send,
) -> Result<T, Failure> {
    match timeout(PATIENCE, asked).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(failure::failure(place, &error)),
        Err(_) => Err(classify(place, failure::timed_out("checkpoint"))),
    }
}
