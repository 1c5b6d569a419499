//! `flow remove`: slot, checkpoint, outcomes and log go, evidence and audit stay. One step per side; what
//! cannot be dropped is an orphan, listed with the SQL that drops it. Every step may be repeated.

use trellara_actors::ports::{Clock, RemoveOptions, RemovedPart, RemovedState};
use trellara_storage::codec::key::Key;
use trellara_storage::families::flows;
use trellara_storage::records::FlowPart;
use trellara_storage::{Batch, Error, Family, FlowName};

use super::factory::EngineFactory;
use crate::postgres::ident::literal;
use crate::settings::FlowSettings;

/// What a flow leaves in the store beside its evidence.
const LOG_FAMILIES: [Family; 4] = [Family::Log, Family::Chunks, Family::Dedup, Family::Relations];

pub(super) async fn remove(
    factory: &EngineFactory,
    flow: &FlowName,
    options: RemoveOptions,
) -> Result<Vec<RemovedPart>, Error> {
    let mut parts = Vec::new();
    if let Some(settings) = factory.settings(flow) {
        parts.push(slot(factory, &settings, options).await);
        parts.push(checkpoint(factory, &settings, options).await);
    }
    if let Some(part) = log(factory, flow, options).await? {
        parts.push(part);
    }
    Ok(parts)
}

async fn slot(factory: &EngineFactory, settings: &FlowSettings, options: RemoveOptions) -> RemovedPart {
    let (slot, server) = (&settings.source.slot, &settings.source.server);
    let what = format!("replication slot {slot} at {}:{}/{}", server.host, server.port, server.database);
    let state = if options.keep_slot {
        RemovedState::Kept
    } else if options.dry_run {
        RemovedState::WouldDrop
    } else {
        match factory.source(settings).drop_slot().await {
            Ok(_) => RemovedState::Dropped,
            Err(failure) => RemovedState::Left {
                why: failure.summary,
                sql: Some(format!("SELECT pg_drop_replication_slot({})", literal(slot))),
            },
        }
    };
    RemovedPart { what, state }
}

async fn checkpoint(factory: &EngineFactory, settings: &FlowSettings, options: RemoveOptions) -> RemovedPart {
    let server = &settings.target.server;
    let what = format!("checkpoint and outcomes at {}:{}/{}", server.host, server.port, server.database);
    let state = if options.dry_run {
        RemovedState::WouldDrop
    } else {
        let log = factory.log().for_store();
        match factory.target(settings, log).forget().await {
            Ok(()) => RemovedState::Dropped,
            Err(failure) => {
                let name = literal(&settings.name.to_string());
                RemovedState::Left {
                    why: failure.summary,
                    sql: Some(format!(
                        "DELETE FROM trellara.checkpoint WHERE flow = {name}; \
                         DELETE FROM trellara.transaction_outcomes WHERE flow = {name}"
                    )),
                }
            }
        }
    };
    RemovedPart { what, state }
}

async fn log(
    factory: &EngineFactory,
    flow: &FlowName,
    options: RemoveOptions,
) -> Result<Option<RemovedPart>, Error> {
    let Some((id, mut identity)) = factory.stored(flow).await? else { return Ok(None) };
    let what = "durable log, dedup index and positions in this store".to_owned();
    if options.dry_run {
        return Ok(Some(RemovedPart { what, state: RemovedState::WouldDrop }));
    }
    let mut batch = Batch::new();
    for family in LOG_FAMILIES {
        let (from, to) = Key::flow(id).range();
        batch.delete_range(family, from, to);
    }
    for part in [FlowPart::Lineage, FlowPart::Durable, FlowPart::Applied, FlowPart::Floor, FlowPart::Phase] {
        batch.delete(Family::Flows, flows::key(id, part));
    }
    identity.removed = Some(factory.clock().now());
    flows::put(&mut batch, id, FlowPart::Identity, &identity);
    factory.log().for_flow(id).submit(batch).await?.await?;
    Ok(Some(RemovedPart { what, state: RemovedState::Dropped }))
}
