//! Clusters survive what scenarios do to them.

use trellara_scenarios::cluster::{Cluster, Stop};
use trellara_scenarios::sandbox::Sandbox;
use trellara_scenarios::session;

async fn rows(cluster: &Cluster) -> i64 {
    let client = session::open(&cluster.database("postgres")).await.unwrap();
    client.query_one("SELECT count(*) FROM kept", &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_cluster_keeps_its_port_and_what_was_committed_through_kill_and_restart() {
    let sandbox = Sandbox::create().unwrap();
    let mut cluster = Cluster::create(&sandbox, "one").await.unwrap();
    let port = cluster.port();
    session::script(&cluster.database("postgres"), "CREATE TABLE kept AS SELECT 1 AS n").await.unwrap();

    cluster.kill().unwrap();
    assert!(!cluster.is_running());
    cluster.start().await.unwrap();
    assert_eq!((cluster.port(), rows(&cluster).await), (port, 1));

    for how in [Stop::Immediate, Stop::Fast] {
        cluster.stop(how).await.unwrap();
        cluster.start().await.unwrap();
        assert_eq!(rows(&cluster).await, 1);
    }
}

#[tokio::test]
async fn two_clusters_have_different_system_identifiers_and_logical_decoding() {
    let sandbox = Sandbox::create().unwrap();
    let mut seen = Vec::new();
    for name in ["one", "two"] {
        let cluster = Cluster::create(&sandbox, name).await.unwrap();
        let client = session::open(&cluster.database("postgres")).await.unwrap();
        let sql = "SELECT system_identifier, current_setting('wal_level') FROM pg_control_system()";
        let row = client.query_one(sql, &[]).await.unwrap();
        assert_eq!(row.get::<_, String>(1), "logical");
        seen.push(row.get::<_, i64>(0));
    }
    assert_ne!(seen[0], seen[1]);
}
