//! Keeps the leases of this engine's checkpoint rows alive (I11), whatever phase their flows are in: apply
//! renews with what it commits, and a flow that is quarantined or paused commits nothing.
//!
//! It renews for as long as a generation of the flow lives, and never a row that another engine has claimed:
//! that would hold off everybody for somebody who may be dead.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, timeout};
use trellara_actors::apply::EngineIdentity;
use trellara_actors::failure::{Failure, Place};
use trellara_actors::flow::TargetView;
use trellara_storage::{FlowName, InstanceId};

use super::generations::{Generation, Generations};
use crate::apply::checkpoint::{self, Claimant, Held};
use crate::postgres::failure;
use crate::postgres::pool::{Load, Pool};

/// Between two renewals, and sooner where a lease is shorter than three of them.
const INTERVAL: Duration = Duration::from_secs(10);

/// Renews until it is dropped.
pub(super) async fn renew(generations: Generations, engine: EngineIdentity) {
    let mut renewed = Instant::now();
    loop {
        let living = generations.living();
        let interval = living.iter().map(|(_, one)| one.lease / 3).fold(INTERVAL, Duration::min);
        tokio::select! {
            biased;
            () = tokio::time::sleep_until(renewed + interval) => {}
            () = generations.begun() => continue,
        }
        renewed = Instant::now();
        let rounds = due(&generations.living(), &engine).into_iter();
        // Side by side, so that a target that does not answer keeps only its own flows waiting.
        join_all(rounds.map(|(pool, held)| round(pool, engine.instance, held, interval))).await;
    }
}

/// What is to be renewed now, by pool.
fn due(living: &[(FlowName, Generation)], engine: &EngineIdentity) -> Vec<(Arc<Pool>, Vec<Held>)> {
    let mut due: Vec<(Arc<Pool>, Vec<Held>)> = Vec::new();
    for (flow, generation) in living {
        let Some(by) = claimant(&generation.target.borrow(), engine) else { continue };
        let held = Held { flow: flow.clone(), by, lease: generation.lease };
        match due.iter_mut().find(|(pool, _)| Arc::ptr_eq(pool, &generation.pool)) {
            Some((_, flows)) => flows.push(held),
            None => due.push((Arc::clone(&generation.pool), vec![held])),
        }
    }
    due
}

/// By which claim the row is ours; none when it is not. A flow that stays quarantined over a restart of the
/// engine holds its row by a claim of an earlier boot.
fn claimant(view: &TargetView, engine: &EngineIdentity) -> Option<Claimant> {
    let token = view.checkpoint.as_ref().map(|row| row.token);
    match token {
        Some(token) if token.instance != engine.instance => None,
        Some(token) if token.boot == engine.boot => Some(Claimant::Token(token)),
        Some(_) | None => Some(Claimant::AnyBoot),
    }
}

/// A failure is the flows' own to show: they meet the same target.
async fn round(pool: Arc<Pool>, instance: InstanceId, held: Vec<Held>, patience: Duration) {
    let flows = held.len();
    match timeout(patience, renewed(&pool, instance, &held)).await {
        Ok(Ok(renewed)) => tracing::debug!(flows, renewed, "leases renewed"),
        Ok(Err(failure)) => tracing::debug!(flows, code = %failure.code, "leases not renewed"),
        Err(_) => tracing::debug!(flows, "leases not renewed in time"),
    }
}

async fn renewed(pool: &Arc<Pool>, instance: InstanceId, held: &[Held]) -> Result<u64, Failure> {
    let Some(first) = held.first() else { return Ok(0) };
    let mut lease = pool.lease(&first.flow, Load::Ordinary).await?;
    let renewed = checkpoint::renew(&lease.connection().client, instance, held).await;
    let renewed = renewed.map_err(|error| failure::failure(Place::Checkpoint, &error))?;
    lease.give_back();
    Ok(renewed)
}
