//! The harness itself: what the other modules rely on.

use crate::cluster::{Cluster, Stop};

#[tokio::test]
async fn a_cluster_stops_and_comes_back_with_its_content() {
    let mut cluster = Cluster::start(&[]);
    let database = cluster.database("kept").await;
    cluster.client(&database).await.batch_execute("CREATE TABLE t AS SELECT 7 AS n").await.unwrap();
    cluster.stop(Stop::Fast);
    cluster.restart();
    let row = cluster.client(&database).await.query_one("SELECT n FROM t", &[]).await.unwrap();
    assert_eq!(row.get::<_, i32>(0), 7);
}

#[tokio::test]
async fn clusters_have_system_identifiers_of_their_own() {
    let other = Cluster::start(&[]);
    let mut seen = Vec::new();
    for cluster in [Cluster::shared(), &other] {
        let client = cluster.client("postgres").await;
        let row = client.query_one("SELECT system_identifier FROM pg_control_system()", &[]).await.unwrap();
        seen.push(row.get::<_, i64>(0));
    }
    assert_ne!(seen[0], seen[1]);
}
