//! The source port against real servers.

mod facts;
mod setup;
mod slot;
mod stream;

use tokio_postgres::Client;
use trellara_actors::failure::Failure;
use trellara_actors::ports::SourcePort;
use trellara_engine::settings::FlowSettings;
use trellara_engine::source::{Heartbeats, Source, SourceStream};
use trellara_storage::Lsn;

use crate::cluster::Cluster;
use crate::settings::flow;

/// A database with table `sale`, a session in it, and the flow that reads it.
async fn store(cluster: &Cluster) -> (Client, FlowSettings) {
    let database = cluster.database("store").await;
    let client = cluster.client(&database).await;
    client.batch_execute("CREATE TABLE sale (id int PRIMARY KEY, text text)").await.unwrap();
    let settings = flow(&cluster.server(&database), &["sale"]);
    (client, settings)
}

fn source(settings: &FlowSettings) -> Source {
    Source::new(settings, 1, Heartbeats::default())
}

/// The same, with publication and slot made, and the stream open.
async fn streaming(cluster: &Cluster) -> (Client, FlowSettings, Source, SourceStream) {
    let (client, settings) = store(cluster).await;
    let source = source(&settings);
    source.inspect().await.unwrap();
    source.create_slot().await.unwrap();
    let stream = source.open().await.unwrap();
    (client, settings, source, stream)
}

async fn slot_exists(client: &Client, slot: &str) -> bool {
    let sql = "SELECT 1 FROM pg_replication_slots WHERE slot_name = $1::text::name";
    client.query_opt(sql, &[&slot]).await.unwrap().is_some()
}

async fn confirmed(client: &Client, slot: &str) -> Lsn {
    let sql = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = $1::text::name";
    client.query_one(sql, &[&slot]).await.unwrap().get::<_, &str>(0).parse().unwrap()
}

fn failure<T>(result: Result<T, Failure>) -> Failure {
    match result {
        Ok(_) => panic!("a failure was expected"),
        Err(failure) => failure,
    }
}
