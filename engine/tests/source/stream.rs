//! The open stream, its end, and the heartbeat beside it.

use std::time::Duration;

use tokio::time::timeout;
use trellara_actors::capture::Message;
use trellara_actors::failure::{Class, Code, Failure};
use trellara_actors::ports::{ReplicationStream, SourcePort, StreamEvent};
use trellara_engine::source::{Heartbeats, Source, SourceStream};
use trellara_storage::Lsn;

use super::{confirmed, failure, streaming};
use crate::cluster::{Cluster, Stop};
use crate::eventually::eventually;

/// Reads events until `wanted` accepts one.
async fn events_until(stream: &mut SourceStream, wanted: impl Fn(&StreamEvent) -> bool) -> Vec<StreamEvent> {
    let mut events = Vec::new();
    timeout(Duration::from_secs(30), async {
        let mut seen = 0;
        while !events[seen..].iter().any(&wanted) {
            seen = events.len();
            stream.next(&mut events).await.unwrap();
        }
    })
    .await
    .unwrap();
    events
}

fn message(event: &StreamEvent) -> Option<&Message> {
    match event {
        StreamEvent::Message(message) => Some(message),
        StreamEvent::Keepalive { .. } => None,
    }
}

fn begin(events: &[StreamEvent]) -> Option<&Message> {
    events.iter().filter_map(message).find(|message| matches!(message, Message::Begin { .. }))
}

#[tokio::test]
async fn a_streamed_transaction_arrives_with_its_aborted_part_marked() {
    let cluster = Cluster::start(&[("logical_decoding_work_mem", "64kB")]);
    let (client, _settings, _source, mut stream) = streaming(&cluster).await;
    let sql = "BEGIN; INSERT INTO sale SELECT i, repeat('x', 100) FROM generate_series(1, 4000) i; \
               SAVEPOINT s; INSERT INTO sale SELECT i, repeat('y', 100) FROM generate_series(4001, 8000) i; \
               ROLLBACK TO s; INSERT INTO sale VALUES (9000); COMMIT";
    client.batch_execute(sql).await.unwrap();
    let is_end = |event: &StreamEvent| matches!(message(event), Some(Message::StreamCommit { .. }));
    let events = events_until(&mut stream, is_end).await;
    let messages: Vec<_> = events.iter().filter_map(message).collect();
    let aborted = messages.iter().find_map(|message| {
        let Message::StreamAbort { xid, sub_xid } = message else { return None };
        (xid != sub_xid).then_some(*sub_xid)
    });
    let (mut kept, mut undone) = (0, 0);
    for message in &messages {
        if let Message::Change { xid, .. } = message {
            if *xid == aborted { undone += 1 } else { kept += 1 }
        }
    }
    assert_eq!(kept, 4001);
    assert!(undone <= 4000);
    let top = messages.iter().find_map(|message| {
        let Message::StreamStart { xid, .. } = message else { return None };
        Some(*xid)
    });
    assert!(matches!(messages.last(), Some(Message::StreamCommit { xid, .. }) if Some(*xid) == top));
}

#[tokio::test]
async fn what_another_database_writes_arrives_as_a_keepalive_position_that_can_be_confirmed() {
    let cluster = Cluster::start(&[]);
    let (client, settings, _source, mut stream) = streaming(&cluster).await;
    let other = cluster.client("postgres").await;
    let before = confirmed(&client, &settings.source.slot).await;
    let sql = "CREATE TABLE busy AS SELECT generate_series(1, 10000); SELECT pg_switch_wal()";
    other.batch_execute(sql).await.unwrap();
    let position = timeout(Duration::from_secs(30), async {
        loop {
            let mut events = Vec::new();
            stream.next(&mut events).await.unwrap();
            let beyond = events.iter().find_map(|event| match event {
                StreamEvent::Keepalive { position, .. } if *position > before => Some(*position),
                StreamEvent::Keepalive { .. } | StreamEvent::Message(_) => None,
            });
            if let Some(position) = beyond {
                return position;
            }
        }
    })
    .await
    .unwrap();
    stream.confirm(position).await.unwrap();
    eventually("the position is confirmed", || async {
        (confirmed(&client, &settings.source.slot).await == position).then_some(())
    })
    .await;
}

/// Reads and confirms as capture would, until the stream ends.
async fn follow(mut stream: SourceStream) -> Failure {
    let mut events = Vec::new();
    loop {
        events.clear();
        if let Err(failure) = stream.next(&mut events).await {
            return failure;
        }
        for event in &events {
            let position = match event {
                StreamEvent::Keepalive { position, .. } => *position,
                StreamEvent::Message(Message::Commit { end_lsn, .. }) => *end_lsn,
                StreamEvent::Message(_) => continue,
            };
            if let Err(failure) = stream.confirm(position).await {
                return failure;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_stops_fast_while_a_stream_is_open_and_that_is_transient() {
    let mut cluster = Cluster::start(&[]);
    let (client, _settings, source, stream) = streaming(&cluster).await;
    let following = tokio::spawn(follow(stream));
    client.batch_execute("INSERT INTO sale VALUES (1)").await.unwrap();
    let took = tokio::task::block_in_place(|| cluster.stop(Stop::Fast));
    assert!(took < Duration::from_secs(10), "{took:?}");
    let ended = following.await.unwrap();
    assert_eq!(ended.class, Class::Transient, "{ended:?}");
    assert_eq!(failure(source.inspect().await).code, Code::ConnectFailed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_source_ends_the_stream_and_comes_back_where_it_was_confirmed() {
    let mut cluster = Cluster::start(&[]);
    let (client, settings, source, mut stream) = streaming(&cluster).await;
    client.batch_execute("INSERT INTO sale VALUES (1)").await.unwrap();
    let is_commit = |event: &StreamEvent| matches!(message(event), Some(Message::Commit { .. }));
    let events = events_until(&mut stream, is_commit).await;
    let following = tokio::spawn(follow(stream));
    tokio::task::block_in_place(|| cluster.stop(Stop::Kill));
    assert_eq!(following.await.unwrap().class, Class::Transient);
    tokio::task::block_in_place(|| cluster.restart());
    let mut again = source.open().await.unwrap();
    let repeated = events_until(&mut again, is_commit).await;
    assert_eq!(begin(&repeated), begin(&events));
    let client = cluster.client(&settings.source.server.database).await;
    assert!(confirmed(&client, &settings.source.slot).await > Lsn::ZERO);
}

/// From 18 on the server goes on without the publication and says nothing to the stream; only the catalog
/// tells.
#[tokio::test]
async fn a_publication_dropped_under_an_open_stream_is_lost_lineage_or_missing_in_the_facts() {
    let (client, _settings, source, stream) = streaming(Cluster::shared()).await;
    let following = tokio::spawn(follow(stream));
    client.batch_execute("DROP PUBLICATION sales; INSERT INTO sale VALUES (1)").await.unwrap();
    let facts = source.inspect().await.unwrap();
    assert!(facts.publications.is_empty());
    if facts.server_version < 180_000 {
        let ended = following.await.unwrap();
        assert_eq!((ended.class, ended.code), (Class::Lineage, Code::PublicationMissing));
    } else {
        following.abort();
    }
}

#[tokio::test]
async fn i12_one_heartbeat_per_database_comes_back_through_every_stream() {
    let cluster = Cluster::shared();
    let (client, settings, _source, first) = streaming(cluster).await;
    drop(first);
    let heartbeats = Heartbeats::default();
    let mut second_settings = settings.clone();
    second_settings.source.slot.push_str("_b");
    let mut streams = Vec::new();
    for settings in [&settings, &second_settings] {
        let source = Source::new(settings, 1, heartbeats.clone());
        if source.inspect().await.unwrap().slot.is_none() {
            source.create_slot().await.unwrap();
        }
        streams.push(eventually("the slot is free", || async { source.open().await.ok() }).await);
    }
    let is_beat = |event: &StreamEvent| matches!(message(event), Some(Message::Logical { transactional: true, prefix, .. }) if prefix == "trellara");
    let sql = "SELECT count(*) FROM pg_stat_activity \
               WHERE application_name = 'trellara_test_heartbeat' AND datname = current_database()";
    let first = streams.remove(0);
    let mut rest = first;
    events_until(&mut rest, is_beat).await;
    let beating = |count: i64| {
        let client = &client;
        async move { (client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == count).then_some(()) }
    };
    eventually("one session beats", || beating(1)).await;
    drop(rest);
    eventually("it beats on for the other flow", || beating(1)).await;
    drop(streams);
    eventually("nobody beats for nobody", || beating(0)).await;
}
