//! Making, holding and dropping the flow's slot.

use std::time::Duration;

use tokio::time::timeout;
use trellara_actors::failure::{Class, Code};
use trellara_actors::ports::{ReplicationStream, SourcePort};
use trellara_engine::source::{Heartbeats, Source};

use super::{failure, slot_exists, source, store, streaming};
use crate::cluster::Cluster;
use crate::eventually::eventually;

#[tokio::test]
async fn p127_a_slot_that_waits_too_long_for_a_writer_names_it_and_leaves_no_slot() {
    // A cluster of its own: the open transaction would hold up every slot of the others.
    let cluster = Cluster::start(&[]);
    let (client, mut settings) = store(&cluster).await;
    client.batch_execute("BEGIN; INSERT INTO sale VALUES (1)").await.unwrap();
    settings.source.boundary_wait = Duration::from_millis(500);
    let waited = failure(source(&settings).create_slot().await);
    assert_eq!((waited.class, waited.code), (Class::Transient, Code::Contention));
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    assert!(waited.detail.hint.unwrap().contains(&format!("PID {pid},")));
    let observer = cluster.client("postgres").await;
    assert!(!slot_exists(&observer, &settings.source.slot).await);
    client.batch_execute("ROLLBACK").await.unwrap();
    source(&settings).create_slot().await.unwrap();
}

/// The row was not there when the source was inspected, and is older than everything that the slot sends.
#[tokio::test]
async fn a_row_that_commits_while_the_slot_is_made_is_seen_and_leaves_no_slot() {
    let cluster = Cluster::start(&[]);
    let (client, settings) = store(&cluster).await;
    client.batch_execute("BEGIN; INSERT INTO sale VALUES (1)").await.unwrap();
    let (source, slot) = (source(&settings), settings.source.slot.clone());
    assert_eq!(source.inspect().await.unwrap().tables_with_rows, Vec::<String>::new());
    let observer = cluster.client("postgres").await;
    let creation = tokio::spawn(async move { source.create_slot().await });
    eventually("the slot is being made", || async { slot_exists(&observer, &slot).await.then_some(()) })
        .await;
    client.batch_execute("COMMIT").await.unwrap();
    let refused = failure(creation.await.unwrap());
    assert_eq!(refused.code, Code::TablesNotEmpty);
    assert!(refused.detail.message.contains("sale"), "{}", refused.detail.message);
    assert!(!slot_exists(&observer, &slot).await);
}

#[tokio::test]
async fn p127_a_creation_that_is_given_up_leaves_no_slot_although_the_writer_stays() {
    let cluster = Cluster::start(&[]);
    let (client, mut settings) = store(&cluster).await;
    client.batch_execute("BEGIN; INSERT INTO sale VALUES (1)").await.unwrap();
    settings.source.boundary_wait = Duration::from_secs(600);
    let (source, slot) = (source(&settings), settings.source.slot.clone());
    let observer = cluster.client("postgres").await;
    let creation = tokio::spawn(async move { source.create_slot().await });
    eventually("the slot is being made", || async { slot_exists(&observer, &slot).await.then_some(()) })
        .await;
    creation.abort();
    eventually("the slot and its walsender are gone", || async {
        let walsenders = "SELECT 1 FROM pg_stat_activity WHERE backend_type = 'walsender'";
        let gone = observer.query(walsenders, &[]).await.unwrap().is_empty();
        (gone && !slot_exists(&observer, &slot).await).then_some(())
    })
    .await;
    client.batch_execute("COMMIT").await.unwrap();
}

/// Given up at every moment of a creation that nothing holds up: before, during and after it is made.
#[tokio::test]
async fn p127_a_creation_dropped_at_any_moment_leaves_no_slot() {
    let cluster = Cluster::start(&[]);
    let (client, settings) = store(&cluster).await;
    let source = source(&settings);
    let mut made = 0;
    for step in 0..60 {
        let limit = Duration::from_micros(500 * step);
        if timeout(limit, source.create_slot()).await.is_ok() {
            made += 1;
            source.drop_slot().await.unwrap();
        }
        eventually("no slot and no walsender", || async {
            let sql = "SELECT 1 FROM pg_stat_activity WHERE backend_type = 'walsender'";
            let quiet = client.query(sql, &[]).await.unwrap().is_empty();
            (quiet && !slot_exists(&client, &settings.source.slot).await).then_some(())
        })
        .await;
    }
    assert!(made < 60);
}

#[tokio::test]
async fn a_slot_in_use_names_who_uses_it() {
    let (client, settings, _source, _stream) = streaming(Cluster::shared()).await;
    let second = Source::new(&settings, 2, Heartbeats::default());
    let refused = failure(second.open().await);
    assert_eq!((refused.class, refused.code), (Class::Transient, Code::SlotInUse));
    let sql = "SELECT active_pid FROM pg_replication_slots WHERE slot_name = $1::text::name";
    let pid: i32 = client.query_one(sql, &[&settings.source.slot]).await.unwrap().get(0);
    let wanted = format!("PID {pid}, application \"trellara_test_1\", host 127.0.0.1");
    assert!(refused.detail.message.contains(&wanted), "{}", refused.detail.message);
}

#[tokio::test]
async fn dropping_the_slot_ends_our_own_connection_and_nobody_elses() {
    let (client, settings, source, stream) = streaming(Cluster::shared()).await;
    let mut foreign = settings.clone();
    foreign.instance = "test_2".into();
    let other = Source::new(&foreign, 1, Heartbeats::default());
    assert_eq!(failure(other.drop_slot().await).code, Code::SlotInUse);
    assert!(slot_exists(&client, &settings.source.slot).await);
    assert!(source.drop_slot().await.unwrap());
    assert!(!slot_exists(&client, &settings.source.slot).await);
    stream.close().await;
}

#[tokio::test]
async fn opening_without_a_slot_is_lost_lineage_and_makes_none() {
    let (client, settings) = store(Cluster::shared()).await;
    let lost = failure(source(&settings).open().await);
    assert_eq!((lost.class, lost.code), (Class::Lineage, Code::SlotMissing));
    assert!(!slot_exists(&client, &settings.source.slot).await);
}
