//! The ten checks of the replication transport (`docs/decisions/0001-replication-transport.md`), each a
//! test against a real server.

mod authentication;

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use tokio_postgres::Client;
use trellara_actors::capture::Message;
use trellara_engine::decode::{ChangeBody, Column, Decoder};
use trellara_engine::postgres::replication::{Connection, CopyStream, Frame, StartOptions};
use trellara_engine::postgres::{Error, Session};
use trellara_engine::settings::Server;
use trellara_storage::Lsn;

use crate::cluster::Cluster;
use crate::eventually::eventually;

const SLOT: &str = "transport";
const WAL_SENDER_TIMEOUT: Duration = Duration::from_secs(30);

fn session() -> Session {
    Session { application_name: "trellara_test_1".into(), lock_timeout: Duration::from_secs(5) }
}

async fn open(server: &Server) -> Result<Connection, Error> {
    Connection::open(server, &session(), WAL_SENDER_TIMEOUT).await
}

async fn stream_slot(server: &Server, slot: &str) -> Result<CopyStream, Error> {
    let publications = ["transport".to_owned()];
    let options = StartOptions {
        slot,
        publications: &publications,
        streaming: true,
        binary: false,
        idle_timeout: Duration::from_secs(20),
    };
    open(server).await?.start(&options).await
}

async fn stream(server: &Server) -> Result<CopyStream, Error> {
    stream_slot(server, &format!("{SLOT}_{}", server.database)).await
}

/// A database with a published table `t (id int primary key, text text)` and a slot of its own.
async fn published(cluster: &Cluster) -> (Client, Server) {
    let database = cluster.database("transport").await;
    let client = cluster.client(&database).await;
    let sql = "CREATE TABLE t (id int PRIMARY KEY, text text); CREATE PUBLICATION transport FOR TABLE t";
    client.batch_execute(sql).await.unwrap();
    make_slot(&client, &format!("{SLOT}_{database}")).await;
    (client, cluster.server(&database))
}

async fn make_slot(client: &Client, slot: &str) {
    let sql = "SELECT pg_create_logical_replication_slot($1::text::name, 'pgoutput')";
    client.execute(sql, &[&slot]).await.unwrap();
}

async fn confirmed(client: &Client, server: &Server) -> Lsn {
    let sql = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = $1::text::name";
    let slot = format!("{SLOT}_{}", server.database);
    client.query_one(sql, &[&slot]).await.unwrap().get::<_, &str>(0).parse().unwrap()
}

async fn slot_is_free(client: &Client, server: &Server) {
    let sql = "SELECT 1 FROM pg_replication_slots WHERE slot_name = $1::text::name AND NOT active";
    let slot = format!("{SLOT}_{}", server.database);
    eventually("the slot is free", || async { client.query_opt(sql, &[&slot]).await.unwrap().map(drop) })
        .await;
}

/// Reads messages until `wanted` accepts one.
async fn messages_until(stream: &mut CopyStream, wanted: impl Fn(&Message) -> bool) -> Vec<Message> {
    let mut decoder = Decoder::default();
    let mut messages = Vec::new();
    timeout(Duration::from_secs(30), async {
        loop {
            while let Some(frame) = stream.take().unwrap() {
                let Frame::Data(payload) = frame else { continue };
                let Some(message) = decoder.decode(&payload).unwrap() else { continue };
                messages.push(message);
                if wanted(&messages[messages.len() - 1]) {
                    return;
                }
            }
            stream.wait().await.unwrap();
        }
    })
    .await
    .unwrap();
    messages
}

fn is_commit(message: &Message) -> bool {
    matches!(message, Message::Commit { .. })
}

fn end_of(messages: &[Message]) -> Lsn {
    match messages.last() {
        Some(Message::Commit { end_lsn, .. }) => *end_lsn,
        other => panic!("a commit ends a transaction, not {other:?}"),
    }
}

/// The first column of each inserted row.
fn inserted(messages: &[Message]) -> Vec<i32> {
    let id = |message: &Message| {
        let Message::Change { body, .. } = message else { return None };
        let row = ChangeBody::insert(body).unwrap().new_row().unwrap();
        match row.columns().next() {
            Some(Column::Text(text)) => Some(std::str::from_utf8(text).unwrap().parse().unwrap()),
            other => panic!("a number as text, not {other:?}"),
        }
    };
    messages.iter().filter_map(id).collect()
}

#[tokio::test]
async fn check_1_starting_on_a_missing_slot_fails_and_makes_none() {
    let (client, server) = published(Cluster::shared()).await;
    let refused = stream_slot(&server, "never_made").await.unwrap_err();
    assert_eq!(refused.sqlstate(), Some("42704"));
    let found = client.query("SELECT 1 FROM pg_replication_slots WHERE slot_name = 'never_made'", &[]).await;
    assert!(found.unwrap().is_empty());
}

#[tokio::test]
async fn check_2_the_slot_moves_to_exactly_what_is_confirmed_and_not_before() {
    let (client, server) = published(Cluster::shared()).await;
    let before = confirmed(&client, &server).await;
    client.batch_execute("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)").await.unwrap();
    client.batch_execute("INSERT INTO t VALUES (3)").await.unwrap();

    let mut received = stream(&server).await.unwrap();
    let first = messages_until(&mut received, is_commit).await;
    let second = messages_until(&mut received, is_commit).await;
    assert_eq!((inserted(&first), inserted(&second)), (vec![1, 2], vec![3]));
    received.close().await;
    slot_is_free(&client, &server).await;
    assert_eq!(confirmed(&client, &server).await, before, "nothing was confirmed");

    let mut again = stream(&server).await.unwrap();
    assert_eq!(messages_until(&mut again, is_commit).await, first);
    again.confirm(end_of(&first)).await.unwrap();
    eventually("the confirmed position", || async {
        (confirmed(&client, &server).await != before).then_some(())
    })
    .await;
    assert_eq!(confirmed(&client, &server).await, end_of(&first));
    again.close().await;
    let mut rest = stream(&server).await.unwrap();
    assert_eq!(inserted(&messages_until(&mut rest, is_commit).await), [3]);
}

/// One runtime thread: anything that blocked it would stop the live stream too.
#[tokio::test]
async fn check_4_a_host_that_accepts_and_never_answers_delays_nobody_else() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (client, server) = published(Cluster::shared()).await;
    let dead = Server {
        port: silent.local_addr().unwrap().port(),
        connect_timeout: Duration::from_secs(3),
        ..server.clone()
    };
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let dead = dead.clone();
            tokio::spawn(async move { open(&dead).await.map(drop) })
        })
        .collect();
    let mut live = stream(&server).await.unwrap();
    client.batch_execute("INSERT INTO t VALUES (1)").await.unwrap();
    assert_eq!(inserted(&messages_until(&mut live, is_commit).await), [1]);
    assert!(waiting.iter().all(|task| !task.is_finished()), "the dead host was still being waited for");
    for task in waiting {
        assert!(matches!(task.await.unwrap(), Err(Error::TimedOut(_))));
    }
}

#[tokio::test]
async fn a_port_that_speaks_something_else_is_told_from_postgresql() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        // Held open: the answer alone has to be enough.
        std::future::pending::<()>().await;
    });
    let refused = open(&Server { port, ..Cluster::shared().server("postgres") }).await.unwrap_err();
    assert!(matches!(refused, Error::Protocol(_)), "{refused:?}");
}

#[tokio::test]
async fn check_5_a_large_transaction_is_streamed_before_it_commits() {
    let cluster = Cluster::start(&[("logical_decoding_work_mem", "64kB")]);
    let (client, server) = published(&cluster).await;
    let mut stream = stream(&server).await.unwrap();
    let open = "BEGIN; INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 5000) i; \
                SAVEPOINT s; INSERT INTO t SELECT i FROM generate_series(5001, 9000) i; ROLLBACK TO s";
    client.batch_execute(open).await.unwrap();
    let streamed = messages_until(&mut stream, |m| matches!(m, Message::StreamStop)).await;
    assert!(matches!(streamed[0], Message::StreamStart { first_segment: true, .. }));
    assert!(streamed.iter().any(|m| matches!(m, Message::Change { xid: Some(_), .. })));
    client.batch_execute("COMMIT").await.unwrap();
    messages_until(&mut stream, |m| matches!(m, Message::StreamCommit { .. })).await;
}

#[tokio::test]
async fn check_8_a_unix_socket_is_as_good_as_tcp() {
    let cluster = Cluster::shared();
    let (client, server) = published(cluster).await;
    client.batch_execute("INSERT INTO t VALUES (5)").await.unwrap();
    let mut stream = stream(&cluster.server_on_socket(&server.database)).await.unwrap();
    assert_eq!(inserted(&messages_until(&mut stream, is_commit).await), [5]);
}

#[tokio::test]
async fn check_9_futures_dropped_at_any_point_lose_and_repeat_nothing() {
    let (client, server) = published(Cluster::shared()).await;
    let mut stream = stream(&server).await.unwrap();
    let load = tokio::spawn(async move {
        for id in 0..400 {
            client.execute("INSERT INTO t VALUES ($1, repeat('x', 3000))", &[&id]).await.unwrap();
        }
        client
    });
    let mut decoder = Decoder::default();
    let mut received = Vec::new();
    let mut end = Lsn::ZERO;
    while inserted(&received).len() < 400 || !received.last().is_some_and(is_commit) {
        while let Some(frame) = stream.take().unwrap() {
            let Frame::Data(payload) = frame else { continue };
            let message = decoder.decode(&payload).unwrap().unwrap();
            if let Message::Commit { end_lsn, .. } = &message {
                end = *end_lsn;
            }
            received.push(message);
        }
        // Both are cut off after one poll more often than not.
        let _ = timeout(Duration::from_micros(50), stream.wait()).await;
        let _ = timeout(Duration::ZERO, stream.confirm(end)).await;
    }
    assert_eq!(inserted(&received), (0..400).collect::<Vec<_>>());
    stream.confirm(end).await.unwrap();
    let client = load.await.unwrap();
    eventually("the last confirmation", || async {
        (confirmed(&client, &server).await == end).then_some(())
    })
    .await;
}

#[tokio::test]
async fn check_9_a_dropped_or_closed_stream_frees_its_slot() {
    let (client, server) = published(Cluster::shared()).await;
    for orderly in [true, false] {
        client.batch_execute("INSERT INTO t SELECT coalesce(max(id), 0) + 1 FROM t").await.unwrap();
        let mut open = stream(&server).await.unwrap();
        open.wait().await.unwrap();
        if orderly {
            open.close().await;
        } else {
            drop(open);
        }
        slot_is_free(&client, &server).await;
    }
}

#[tokio::test]
async fn a_silent_server_is_asked_and_then_given_up() {
    let (_client, server) = published(Cluster::shared()).await;
    let publications = ["transport".to_owned()];
    let slot = format!("{SLOT}_{}", server.database);
    let options = StartOptions {
        slot: &slot,
        publications: &publications,
        streaming: true,
        binary: false,
        idle_timeout: Duration::from_millis(400),
    };
    let mut stream = open(&server).await.unwrap().start(&options).await.unwrap();
    // Nothing is written at the source; only answers to our questions keep the stream alive.
    let mut answers = 0;
    while answers < 4 {
        stream.wait().await.unwrap();
        while let Some(frame) = stream.take().unwrap() {
            assert!(matches!(frame, Frame::Keepalive { .. }));
            answers += 1;
        }
    }
}

/// Checks 3 and 10. The runtime has one thread; whatever started more would show in the process.
#[tokio::test]
async fn check_10_two_hundred_streams_share_one_process_and_start_no_thread() {
    const STREAMS: usize = 200;
    let settings = [("max_wal_senders", "220"), ("max_replication_slots", "220"), ("max_connections", "60")];
    let cluster = Cluster::start(&settings);
    let (client, server) = published(&cluster).await;
    for number in 0..STREAMS {
        make_slot(&client, &format!("many_{number}")).await;
    }
    drop(stream(&server).await.unwrap());
    let before = threads();
    let mut streams = Vec::new();
    for number in 0..STREAMS {
        streams.push(stream_slot(&server, &format!("many_{number}")).await.unwrap());
    }
    assert!(threads() < before + 20, "{} threads before, {} after", before, threads());
    client.batch_execute("INSERT INTO t VALUES (1)").await.unwrap();
    for stream in &mut streams {
        assert_eq!(inserted(&messages_until(stream, is_commit).await), [1]);
    }
}

/// Threads of this process; other tests run beside this one, so it is no exact figure.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}
