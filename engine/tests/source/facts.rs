//! What the lineage check is told.

use trellara_actors::ports::{SlotKind, SourcePort, WalStatus};

use super::{confirmed, source, store};
use crate::cluster::{Cluster, Stop};

#[tokio::test]
async fn the_first_look_names_the_server_and_makes_the_publication() {
    let (client, settings) = store(Cluster::shared()).await;
    let facts = source(&settings).inspect().await.unwrap();
    let sql = "SELECT system_identifier, current_setting('server_version_num')::int4, oid \
               FROM pg_control_system(), pg_publication WHERE pubname = 'sales'";
    let row = client.query_one(sql, &[]).await.unwrap();
    assert_eq!(facts.system_identifier, row.get::<_, i64>(0).cast_unsigned());
    assert_eq!(facts.server_version, row.get::<_, i32>(1).cast_unsigned());
    assert_eq!(facts.publications[0].oid, row.get::<_, u32>(2));
    assert_eq!((facts.timeline, facts.timeline_history.as_slice()), (1, [].as_slice()));
    assert_eq!(facts.encoding, "UTF8");
    assert_eq!(facts.slot, None);
    assert!(facts.tables_with_rows.is_empty());
}

#[tokio::test]
async fn tables_that_hold_rows_are_named_until_there_is_a_slot() {
    let (client, mut settings) = store(Cluster::shared()).await;
    // What was found is for the lineage check to judge; the slot itself is refused unless this is said.
    settings.from_now = true;
    client.batch_execute("INSERT INTO sale VALUES (1)").await.unwrap();
    let source = source(&settings);
    assert_eq!(source.inspect().await.unwrap().tables_with_rows, ["\"public\".\"sale\""]);
    source.create_slot().await.unwrap();
    assert!(source.inspect().await.unwrap().tables_with_rows.is_empty());
}

#[tokio::test]
async fn a_slot_shows_as_it_was_made_and_another_of_its_name_shows_another_position() {
    let (client, mut settings) = store(Cluster::shared()).await;
    settings.from_now = true;
    let source = source(&settings);
    source.inspect().await.unwrap();
    let origin = source.create_slot().await.unwrap();
    let slot = source.inspect().await.unwrap().slot.unwrap();
    assert_eq!((slot.kind, slot.plugin.as_str()), (SlotKind::Logical, "pgoutput"));
    assert!(slot.same_database && !slot.temporary && !slot.two_phase);
    assert_eq!(slot.confirmed, Some(origin.consistent_point));
    assert_eq!((slot.wal_status, slot.invalidation), (Some(WalStatus::Reserved), None));
    assert_eq!(slot.active_pid, None);

    assert!(source.drop_slot().await.unwrap());
    assert!(!source.drop_slot().await.unwrap());
    client.batch_execute("INSERT INTO sale VALUES (1)").await.unwrap();
    source.create_slot().await.unwrap();
    let again = source.inspect().await.unwrap().slot.unwrap();
    assert!(again.confirmed > Some(origin.consistent_point));
    assert_eq!(again.confirmed, Some(confirmed(&client, &settings.source.slot).await));
}

#[tokio::test]
async fn p131_slots_of_the_flows_name_that_are_something_else_are_told_apart() {
    let cluster = Cluster::shared();
    let (client, settings) = store(cluster).await;
    let other = cluster.client("postgres").await;
    let slot = &settings.source.slot;
    let logical = |plugin: &str, more: &str| {
        format!("SELECT pg_create_logical_replication_slot('{slot}', '{plugin}', {more})")
    };
    let made = [
        (&client, format!("SELECT pg_create_physical_replication_slot('{slot}')")),
        (&client, logical("test_decoding", "false")),
        (&client, logical("pgoutput", "true")),
        (&client, logical("pgoutput", "false, true")),
        (&other, logical("pgoutput", "false")),
    ];
    let mut seen = Vec::new();
    for (session, sql) in made {
        session.batch_execute(&sql).await.unwrap();
        let facts = source(&settings).inspect().await.unwrap().slot.unwrap();
        seen.push((facts.kind, facts.plugin, facts.temporary, facts.two_phase, facts.same_database));
        session.batch_execute(&format!("SELECT pg_drop_replication_slot('{slot}')")).await.unwrap();
    }
    let logical = |plugin: &str, temporary, two_phase, same| {
        (SlotKind::Logical, plugin.to_owned(), temporary, two_phase, same)
    };
    assert_eq!(
        seen,
        [
            (SlotKind::Physical, String::new(), false, false, false),
            logical("test_decoding", false, false, true),
            logical("pgoutput", true, false, true),
            logical("pgoutput", false, true, true),
            logical("pgoutput", false, false, false),
        ]
    );
}

#[tokio::test]
async fn a_publication_keeps_its_digest_until_its_definition_changes() {
    let (client, settings) = store(Cluster::shared()).await;
    let source = source(&settings);
    let publication = async || source.inspect().await.unwrap().publications.remove(0);
    let first = publication().await;
    assert_eq!(publication().await, first);
    let mut digests = vec![first.digest.clone()];
    for change in [
        "ALTER PUBLICATION sales SET (publish = 'insert, update')",
        "ALTER PUBLICATION sales SET TABLE sale WHERE (id > 7)",
        "ALTER PUBLICATION sales SET TABLE sale (id)",
        "ALTER PUBLICATION sales SET (publish_via_partition_root = true)",
        "CREATE TABLE more (id int PRIMARY KEY); ALTER PUBLICATION sales ADD TABLE more",
    ] {
        client.batch_execute(change).await.unwrap();
        let facts = publication().await;
        assert_eq!(facts.oid, first.oid);
        assert!(!digests.contains(&facts.digest), "{change}");
        digests.push(facts.digest);
    }
    client.batch_execute("DROP PUBLICATION sales").await.unwrap();
    let again = publication().await;
    assert_ne!(again.oid, first.oid, "made anew as long as there is no slot");
    assert_eq!(again.digest, first.digest);
}

#[tokio::test]
async fn a_publication_that_is_missing_beside_a_slot_is_not_made_again() {
    let (client, settings) = store(Cluster::shared()).await;
    let source = source(&settings);
    source.inspect().await.unwrap();
    source.create_slot().await.unwrap();
    client.batch_execute("DROP PUBLICATION sales").await.unwrap();
    assert!(source.inspect().await.unwrap().publications.is_empty());
}

#[tokio::test]
async fn a_promoted_server_tells_where_its_earlier_timeline_ended() {
    let mut cluster = Cluster::start(&[]);
    let (_, settings) = store(&cluster).await;
    let before = source(&settings).inspect().await.unwrap();
    cluster.stop(Stop::Fast);
    cluster.write_file("standby.signal", "");
    cluster.restart();
    cluster.client("postgres").await.execute("SELECT pg_promote()", &[]).await.unwrap();
    let after = source(&settings).inspect().await.unwrap();
    assert_eq!(after.system_identifier, before.system_identifier);
    assert_eq!(after.timeline, 2);
    let [(1, end)] = after.timeline_history[..] else { panic!("{:?}", after.timeline_history) };
    assert!(before.position <= end && end <= after.position);
}
