//! Sources that are not set up for a flow.

use trellara_actors::failure::{Class, Code, Endpoint};
use trellara_actors::ports::SourcePort;
use trellara_engine::settings::TableName;
use trellara_engine::source::Severity;

use super::{failure, source, store};
use crate::cluster::Cluster;
use crate::eventually::eventually;

#[tokio::test]
async fn a_source_without_logical_wal_is_refused_with_the_setting() {
    let cluster = Cluster::start(&[("wal_level", "replica")]);
    let (_, settings) = store(&cluster).await;
    let refused = failure(source(&settings).inspect().await);
    assert_eq!(refused.code, Code::SourceUnsupported);
    assert_eq!(refused.detail.remedy, ["ALTER SYSTEM SET wal_level = 'logical';"]);
}

#[tokio::test]
async fn a_source_that_would_wait_for_this_engine_is_refused_unless_accepted() {
    let cluster = Cluster::start(&[]);
    let (client, mut settings) = store(&cluster).await;
    source(&settings).inspect().await.unwrap();
    let sql = "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (nobody, trellara_test_7)'";
    client.batch_execute(sql).await.unwrap();
    cluster.reload();
    let refused =
        eventually("the setting counts", || async { source(&settings).inspect().await.err() }).await;
    assert_eq!(refused.code, Code::SynchronousStandby);
    settings.source.accept_synchronous = true;
    source(&settings).inspect().await.unwrap();
}

#[tokio::test]
async fn row_security_that_hides_rows_from_the_role_is_refused() {
    let (client, mut settings) = store(Cluster::shared()).await;
    let role = format!("reader_{}", settings.source.server.database);
    let sql = format!(
        "CREATE PUBLICATION sales FOR TABLE sale; CREATE ROLE {role} LOGIN REPLICATION; \
         GRANT SELECT ON sale TO {role}"
    );
    client.batch_execute(&sql).await.unwrap();
    settings.source.server.user.clone_from(&role);
    source(&settings).inspect().await.unwrap();
    client.batch_execute("ALTER TABLE sale ENABLE ROW LEVEL SECURITY").await.unwrap();
    let refused = failure(source(&settings).inspect().await);
    assert_eq!(refused.code, Code::RowSecurity);
    client.batch_execute(&refused.detail.remedy.join(" ")).await.unwrap();
    source(&settings).inspect().await.unwrap();
}

#[tokio::test]
async fn a_publication_that_may_not_be_made_is_answered_with_the_statement() {
    let (client, mut settings) = store(Cluster::shared()).await;
    let role = format!("stranger_{}", settings.source.server.database);
    client.batch_execute(&format!("CREATE ROLE {role} LOGIN REPLICATION")).await.unwrap();
    settings.source.server.user = role;
    let refused = failure(source(&settings).inspect().await);
    assert_eq!(refused.code, Code::SourceUnsupported);
    assert_eq!(refused.detail.remedy, ["CREATE PUBLICATION \"sales\" FOR TABLE \"public\".\"sale\";"]);
    client.batch_execute(&refused.detail.remedy.join(" ")).await.unwrap();
    source(&settings).inspect().await.unwrap();
}

#[tokio::test]
async fn a_role_without_replication_and_a_missing_database_are_the_endpoints_trouble() {
    let (client, settings) = store(Cluster::shared()).await;
    let role = format!("plain_{}", settings.source.server.database);
    client.batch_execute(&format!("CREATE ROLE {role} LOGIN")).await.unwrap();
    let mut plain = settings.clone();
    plain.source.server.user = role;
    let mut nowhere = settings.clone();
    nowhere.source.server.database = "nowhere".into();
    for (settings, code) in [(plain, Code::PermissionDenied), (nowhere, Code::DatabaseMissing)] {
        let refused = failure(source(&settings).inspect().await);
        assert_eq!((refused.class, refused.code), (Class::Endpoint(Endpoint::Source), code));
    }
}

#[tokio::test]
async fn preflight_names_everything_at_once_and_its_statements_put_it_right() {
    let (client, mut settings) = store(Cluster::shared()).await;
    let sql = "CREATE TABLE keyless (n int); INSERT INTO keyless VALUES (1); \
               CREATE UNLOGGED TABLE fleeting (id int PRIMARY KEY); CREATE PUBLICATION sales FOR TABLE sale";
    client.batch_execute(sql).await.unwrap();
    let table = |name: &str| TableName { schema: "public".into(), name: name.into() };
    settings.source.tables.extend([table("keyless"), table("fleeting"), table("absent")]);
    let findings = source(&settings).preflight().await.unwrap();
    let named = |severity, text: &str| {
        findings.iter().any(|finding| finding.severity == severity && finding.what.contains(text))
    };
    assert!(named(Severity::Blocking, "\"fleeting\" is not logged"));
    assert!(named(Severity::Blocking, "\"keyless\" is in none of the flow's publications"));
    assert!(named(Severity::Blocking, "\"absent\" does not exist"));
    assert!(named(Severity::Warning, "\"keyless\" has no replica identity"));
    assert!(named(
        Severity::Blocking,
        "tables hold rows before the start, which only start: from_now accepts"
    ));
    settings.from_now = true;
    let accepted = source(&settings).preflight().await.unwrap();
    let rows = accepted.iter().find(|finding| finding.what.contains("tables hold rows")).unwrap();
    assert_eq!(rows.severity, Severity::Warning);
    assert!(!findings.iter().any(|finding| finding.what.contains("\"sale\" ")));

    for statement in findings.iter().flat_map(|finding| &finding.remedy) {
        client.batch_execute(statement).await.unwrap();
    }
    client.batch_execute("CREATE TABLE absent (id int PRIMARY KEY); TRUNCATE keyless").await.unwrap();
    client.batch_execute("ALTER PUBLICATION sales ADD TABLE absent").await.unwrap();
    let rest = source(&settings).preflight().await.unwrap();
    let waits = |what: &str| what.starts_with("making the slot waits");
    assert!(rest.iter().all(|finding| waits(&finding.what)), "{rest:?}");
}
