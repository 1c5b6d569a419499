//! A store that was taken back to an earlier point: nothing is confirmed or applied before its lineage was
//! judged.

use trellara_actors::failure::Code;
use trellara_actors::flow::Phase;
use trellara_actors::flow::state::{Pause, PauseScope};
use trellara_storage::families::default;
use trellara_storage::records::RecoveryMark;
use trellara_storage::{Batch, Durability, FlowId, Lsn, Store, Timestamp};

use super::fleet::World;
use crate::eventually::eventually;

const FLOW: FlowId = FlowId::new(1);

fn mark(world: &World) {
    let mut batch = Batch::new();
    let mark = RecoveryMark { at: Timestamp::default(), reason: "damaged file".into() };
    default::put_mark(&mut batch, FLOW, &mark);
    world.store.write(batch, Durability::Synced).unwrap();
}

async fn rows(world: &World) -> i64 {
    world.target.query_one("SELECT count(*) FROM sale", &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovered_flow_that_passes_the_lineage_check_goes_on_and_is_checked_once() {
    let world = World::new().await;
    let engine = world.engine(1).await;
    engine.runs().await;
    engine.end().await;
    mark(&world);
    world.source.batch_execute("INSERT INTO sale VALUES (1)").await.unwrap();
    let engine = world.engine(2).await;
    eventually("the row", || async { (rows(&world).await == 1).then_some(()) }).await;
    assert_eq!(default::mark(&*world.store, FLOW).unwrap(), None);
    engine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovered_flow_whose_slot_has_moved_on_applies_nothing_of_what_its_log_holds() {
    let world = World::new().await;
    let engine = world.engine(1).await;
    engine.runs().await;
    let flow = &world.settings.name;
    let pause = Pause {
        scope: PauseScope::Apply,
        who: "ada".into(),
        why: "test".into(),
        since: Timestamp::default(),
        until: None,
    };
    engine.fleet.pause(flow.clone(), pause).await.unwrap();
    engine.shows(Phase::Paused).await;
    world.source.batch_execute("INSERT INTO sale VALUES (1)").await.unwrap();
    let written = world.source.query_one("SELECT pg_current_wal_lsn()::text", &[]).await.unwrap();
    let written: Lsn = written.get::<_, &str>(0).parse().unwrap();
    eventually("the row is in the log", || async {
        (engine.status()?.durable.position >= written).then_some(())
    })
    .await;
    engine.end().await;

    mark(&world);
    world.source.batch_execute("INSERT INTO sale VALUES (2)").await.unwrap();
    let advance = "SELECT pg_replication_slot_advance($1::text::name, pg_current_wal_lsn())";
    eventually("the slot is free", || async {
        world.source.execute(advance, &[&world.settings.source.slot]).await.ok()
    })
    .await;
    let engine = world.engine(2).await;
    engine.shows(Phase::Paused).await;
    engine.fleet.resume(flow.clone()).await.unwrap();
    let lost = engine.shows(Phase::LineageLost).await;
    let code = lost.conditions[0].reason.code.clone();
    assert_eq!(code, Some(Code::StoreRecovered.to_string()));
    assert_eq!(rows(&world).await, 0);
    let claimed: i64 = {
        let sql = "SELECT boot FROM trellara.checkpoint";
        world.target.query_one(sql, &[]).await.unwrap().get(0)
    };
    assert_eq!(claimed, 1, "the row was read, and not claimed");
    assert!(default::mark(&*world.store, FLOW).unwrap().is_some());
    engine.end().await;
}
