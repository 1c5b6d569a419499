//! The owner keeps its lease whatever the flow does (I11).

use std::time::Duration;

use trellara_actors::flow::Phase;
use trellara_actors::ports::{Claim, Claimed, TargetPort, TargetSession};
use trellara_engine::apply::PgTarget;
use trellara_engine::postgres::pool::Pools;
use trellara_storage::log::LogHandle;
use trellara_storage::{FlowId, InstanceId};

use super::fleet::World;
use crate::eventually::eventually;

const LEASE: Duration = Duration::from_secs(2);

/// What the engine of another instance is told.
async fn rival(world: &World, log: &LogHandle) -> Claimed {
    let pool = Pools::new("rival").pool(&world.settings.target);
    let target = PgTarget::new(&world.settings, log.for_flow(FlowId::new(1)), pool);
    let claim = Claim {
        instance: InstanceId::new([2; 16]),
        boot: 1,
        holder: "engine 2".into(),
        take_over: false,
        initial: None,
    };
    target.connect().await.unwrap().claim(&claim).await.unwrap()
}

/// Waits until two leases from now would have run out.
async fn outlast(world: &World) {
    let from: f64 = seconds(world, "extract(epoch FROM clock_timestamp())::float8").await;
    let until = from + 2.0 * LEASE.as_secs_f64() + 1.0;
    eventually("two leases have passed", || async {
        let now = seconds(world, "extract(epoch FROM clock_timestamp())::float8").await;
        (now > until).then_some(())
    })
    .await;
}

async fn seconds(world: &World, expression: &str) -> f64 {
    world.target.query_one(&format!("SELECT {expression}"), &[]).await.unwrap().get(0)
}

/// A flow that stands before a transaction which the target refuses.
async fn refused() -> World {
    let mut world = World::new().await;
    world.settings.target.lease = LEASE;
    world.target.batch_execute("ALTER TABLE sale ADD CHECK (id < 10)").await.unwrap();
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn i11_a_quarantined_flow_keeps_its_lease_also_over_a_restart_and_frees_it_once_it_is_stopped() {
    let world = refused().await;
    let engine = world.engine(1).await;
    engine.runs().await;
    world.source.batch_execute("INSERT INTO sale VALUES (11)").await.unwrap();
    engine.shows(Phase::Quarantined).await;
    outlast(&world).await;
    let Claimed::Held(row) = rival(&world, engine.log()).await else { panic!("the lease is live") };
    assert_eq!((row.holder.as_str(), row.token.boot), ("engine 1", 1));
    engine.end().await;

    let engine = world.engine(2).await;
    engine.shows(Phase::Quarantined).await;
    outlast(&world).await;
    let Claimed::Held(row) = rival(&world, engine.log()).await else { panic!("the lease is live") };
    assert_eq!(row.token.boot, 1, "nothing was claimed meanwhile");

    let log = engine.log().clone();
    engine.fleet.close().await.unwrap();
    eventually("the lease of a stopped flow runs out", || async {
        matches!(rival(&world, &log).await, Claimed::Ours(_)).then_some(())
    })
    .await;
    drop(log);
    engine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i11_a_row_that_another_engine_took_over_is_not_renewed_any_more() {
    let world = refused().await;
    let engine = world.engine(1).await;
    engine.runs().await;
    let taken = "UPDATE trellara.checkpoint SET instance = '02020202020202020202020202020202', \
                 generation = generation + 1, lease_until = clock_timestamp()";
    world.target.batch_execute(taken).await.unwrap();
    world.source.batch_execute("INSERT INTO sale VALUES (1)").await.unwrap();
    engine.shows(Phase::Fenced).await;
    outlast(&world).await;
    let live = "(SELECT count(*)::float8 FROM trellara.checkpoint WHERE lease_until > clock_timestamp())";
    assert!(seconds(&world, live).await < 1.0);
    engine.end().await;
}
