//! Sources that do not speak UTF-8, and characters that the target lacks.

use trellara_actors::failure::{Class, Code};

use super::stage::{Stage, assert_failure};

const TABLE: &str = "CREATE TABLE \"Preis\"(k text PRIMARY KEY, \"w\" text)";

#[tokio::test]
async fn text_of_a_latin1_source_arrives_as_the_same_characters() {
    let mut stage = Stage::encoded("LATIN1", "UTF8", TABLE).await;
    stage.run("INSERT INTO \"Preis\" VALUES ('ä', 'ö\"\\ü'), ('b', 'é')").await;
    stage.run("UPDATE \"Preis\" SET \"w\" = 'ß' WHERE k = 'ä'").await;
    stage.run("INSERT INTO \"Preis\" VALUES ('ö', NULL)").await;
    stage.apply_all().await;
    stage.assert_equal("SELECT * FROM \"Preis\"").await;
}

#[tokio::test]
async fn a_character_that_the_target_lacks_is_row_data() {
    let mut stage = Stage::encoded("UTF8", "LATIN1", "CREATE TABLE t(k int PRIMARY KEY, v text)").await;
    stage.run("INSERT INTO t VALUES (1, 'ü')").await;
    stage.run("INSERT INTO t VALUES (2, '列')").await;
    let (at, failure) = stage.first_failure().await.unwrap();
    assert_eq!(at, 1);
    assert_failure(&failure, Class::RowData, Code::RowDataInvalid);
    assert_eq!(failure.detail.sqlstate.as_deref(), Some("22P05"));
    assert_eq!(stage.at_target("SELECT k, v FROM t").await, ["(1,ü)"]);
}
