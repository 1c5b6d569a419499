//! What is pinned on every connection, whatever roles and databases set.

use std::time::Duration;

use trellara_actors::capture::Message;
use trellara_actors::ports::{ReplicationStream, SourcePort, StreamEvent};
use trellara_engine::decode::{ChangeBody, Column};
use trellara_engine::postgres::replication::Connection;
use trellara_engine::postgres::{Session, connect};
use trellara_engine::source::{Heartbeats, Source};

use crate::cluster::Cluster;
use crate::settings::flow;

/// Set against us, and what has to be seen all the same.
const SETTINGS: &[(&str, &str, &str)] = &[
    ("timezone", "'Asia/Tokyo'", "UTC"),
    ("datestyle", "'SQL, DMY'", "ISO, MDY"),
    ("intervalstyle", "iso_8601", "postgres"),
    ("extra_float_digits", "0", "3"),
    ("bytea_output", "escape", "hex"),
    ("xmloption", "document", "content"),
    ("array_nulls", "off", "on"),
    ("row_security", "on", "off"),
    ("search_path", "public", "pg_catalog"),
    ("quote_all_identifiers", "on", "off"),
    ("statement_timeout", "5000", "0"),
    ("idle_in_transaction_session_timeout", "5000", "0"),
    ("idle_session_timeout", "5000", "0"),
    ("default_transaction_read_only", "on", "off"),
    ("default_transaction_isolation", "serializable", "read committed"),
    ("lock_timeout", "5000", "7s"),
];

#[tokio::test]
async fn pinned_settings_hold_on_both_kinds_of_connections() {
    let cluster = Cluster::shared();
    let database = cluster.database("pinned").await;
    let client = cluster.client("postgres").await;
    for (name, against, _) in SETTINGS {
        client.batch_execute(&format!("ALTER DATABASE {database} SET {name} = {against}")).await.unwrap();
    }
    let server = cluster.server(&database);
    let session =
        Session { application_name: "trellara_test_1".into(), lock_timeout: Duration::from_secs(7) };
    let sql_session = connect(&server, &session).await.unwrap();
    let mut replication = Connection::open(&server, &session, Duration::from_secs(33)).await.unwrap();
    for (name, _, wanted) in SETTINGS {
        let sql = format!("SELECT current_setting('{name}')");
        let row = sql_session.query_one(&sql, &[]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), *wanted, "{name}");
        assert_eq!(replication.command(&sql).await.unwrap()[0].text(0).unwrap(), *wanted, "{name}");
    }
    let shown = replication.command("SHOW wal_sender_timeout").await.unwrap();
    assert_eq!(shown[0].text(0).unwrap(), "33s");
}

#[tokio::test]
async fn the_stream_keeps_the_sources_own_encoding_whatever_the_role_prefers() {
    let cluster = Cluster::shared();
    let admin = cluster.client("postgres").await;
    let sql = "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0";
    admin.batch_execute(sql).await.unwrap();
    admin.batch_execute("ALTER DATABASE latin SET client_encoding = 'UTF8'").await.unwrap();
    let client = cluster.client("latin").await;
    client.batch_execute("CREATE TABLE sale (id int PRIMARY KEY, text text)").await.unwrap();
    let source = Source::new(&flow(&cluster.server("latin"), &["sale"]), 1, Heartbeats::default());
    assert_eq!(source.inspect().await.unwrap().encoding, "LATIN1");
    source.create_slot().await.unwrap();
    let mut stream = source.open().await.unwrap();
    client.batch_execute("INSERT INTO sale VALUES (1, 'käse')").await.unwrap();
    let mut events = Vec::new();
    let inserted = |event: &StreamEvent| match event {
        StreamEvent::Message(Message::Change { body, .. }) => Some(body.clone()),
        StreamEvent::Message(_) | StreamEvent::Keepalive { .. } => None,
    };
    let body = loop {
        stream.next(&mut events).await.unwrap();
        if let Some(body) = events.iter().find_map(inserted) {
            break body;
        }
    };
    let row = ChangeBody::insert(&body).unwrap().new_row().unwrap();
    assert_eq!(row.columns().last(), Some(Column::Text(b"k\xe4se")));
}
