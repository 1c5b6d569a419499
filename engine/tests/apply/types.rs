//! Values of every type pass through unchanged.

use trellara_actors::failure::{Class, Code};

use super::stage::{Stage, assert_failure};

const TYPES: &str = r#"
CREATE SCHEMA "my app";
CREATE TYPE "my app"."Mood" AS ENUM ('low', 'it''s "mid"', 'hi,gh');
CREATE TYPE inner_pair AS (a int, b text);
CREATE TYPE pair AS (p inner_pair, n numeric(6,2)[]);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN tags AS text[] CHECK (cardinality(VALUE) < 9);
CREATE DOMAIN paired AS inner_pair;
CREATE DOMAIN short AS varchar(5);
CREATE TABLE ty(
  k int PRIMARY KEY, c_bool bool, c_int2 int2, c_int8 int8, c_numeric numeric, c_numeric_s numeric(12,3),
  c_float4 float4, c_float8 float8, c_money money, c_text text, c_varchar varchar(20), c_char char(6),
  c_name name, c_byte "char", c_bytea bytea, c_date date, c_time time, c_timetz timetz, c_timestamp timestamp,
  c_timestamptz timestamptz(3), c_interval interval, c_uuid uuid, c_json json, c_jsonb jsonb, c_xml xml,
  c_inet inet, c_cidr cidr, c_macaddr macaddr, c_bit bit(5), c_varbit varbit, c_point point, c_box box,
  c_path path, c_polygon polygon, c_circle circle, c_lseg lseg, c_tsvector tsvector, c_tsquery tsquery,
  c_range int4range, c_multirange nummultirange, c_enum "my app"."Mood", c_pair pair, c_domain positive,
  c_tags tags, c_paired paired, c_short short, c_ints int[], c_matrix int[][], c_texts text[],
  c_boxes box[], c_enums "my app"."Mood"[], c_pairs pair[], c_bits bit(3)[], c_chars char(4)[],
  c_shorts short[], c_byteas bytea[], c_lsn pg_lsn, c_vector int2vector, c_bounded int[])
"#;

const ROWS: &str = r#"
INSERT INTO ty VALUES (1, true, -32768, 9223372036854775807, 'NaN', 12345.678, 1.1e-38, 'Infinity', '-$1,234.56',
  E'tab\tnew\nline "quoted" \\back {brace,} NULL ''', 'NULL', 'ab', 'a name', 'x', '\x00ff5c22', '4713-01-01 BC', '24:00:00',
  '12:00:00.123456-03:30', 'infinity', '2024-02-29 12:34:56.789+05', '-1 year 2 mons -3 days 04:05:06.789',
  'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"a":  "b\"\\",  "a":1}', '{"z": [1, null], "u": "\u00fc"}', '<a b="c">&amp;</a>',
  '10.1.2.3/8', '10.0.0.0/8', '08:00:2b:01:02:03', B'10101', B'', '(1.5,-2)', '((3,4),(1,2))',
  '[(0,0),(1,1),(2,0)]', '((0,0),(1,1),(2,0))', '<(1,2),3>', '[(0,0),(1,1)]', '''a b'':1 c', 'a & !b', '[1,5)', '{[1,2),[5,9)}', 'it''s "mid"',
  ROW(ROW(1, 'x,"y" (z)'), ARRAY[1.5, NULL]), 5, ARRAY['a,b', NULL, '', 'NULL'], ROW(NULL, ''), 'abcde',
  '{1,NULL,3}', '{{1,2},{3,4}}', ARRAY['', NULL, 'NULL', 'a"b\c', '{x}'], ARRAY['((3,4),(1,2))'::box, NULL],
  ARRAY['hi,gh', NULL]::"my app"."Mood"[], ARRAY[ROW(ROW(1,'q"'),'{1}')]::pair[], ARRAY[B'101', NULL], ARRAY['ab'],
  ARRAY['abc', NULL], ARRAY['\x22'::bytea], '16/B374D848', '1 2 3', '[0:1]={7,8}');
INSERT INTO ty(k) VALUES (2);
INSERT INTO ty(k, c_text, c_varchar, c_char, c_bytea, c_texts, c_pair, c_range) VALUES (3, '', '', '', '', '{}', ROW(NULL, NULL), 'empty');
"#;

#[tokio::test]
async fn values_of_every_type_arrive_as_they_left() {
    let mut stage = Stage::new(TYPES).await;
    stage.run(ROWS).await;
    stage.apply_all().await;
    stage.assert_equal("SELECT * FROM ty").await;
    stage.run("UPDATE ty SET c_bool = NOT c_bool, c_numeric = 1.50, c_enum = 'low', c_texts = NULL WHERE k <> 2").await;
    stage.run("DELETE FROM ty WHERE k = 2").await;
    stage.apply_all().await;
    stage.assert_equal("SELECT * FROM ty").await;
}

#[tokio::test]
async fn whole_rows_of_every_type_are_found_again() {
    let mut stage = Stage::with(TYPES, "ALTER TABLE ty DROP CONSTRAINT ty_pkey", |_| ()).await;
    stage.run("ALTER TABLE ty DROP CONSTRAINT ty_pkey; ALTER TABLE ty REPLICA IDENTITY FULL").await;
    stage.run(ROWS).await;
    stage.run("UPDATE ty SET k = k + 10").await;
    stage.run("DELETE FROM ty WHERE k = 12").await;
    stage.apply_all().await;
    stage.assert_equal("SELECT * FROM ty").await;
}

#[tokio::test]
async fn null_and_the_empty_string_stay_apart() {
    let mut stage = Stage::new("CREATE TABLE t(k text PRIMARY KEY, v text, a text[])").await;
    stage.run("INSERT INTO t VALUES ('', '', '{}'), ('null', NULL, NULL), ('x', 'NULL', '{NULL,\"NULL\",\"\"}')").await;
    stage.run("UPDATE t SET v = NULL WHERE k = ''; UPDATE t SET v = '' WHERE k = 'null'").await;
    stage.apply_all().await;
    stage.assert_equal("SELECT k, v IS NULL, v, a IS NULL, a FROM t").await;
}

#[tokio::test]
async fn keys_of_any_type_find_their_rows() {
    let mut stage = Stage::new(
        "CREATE TYPE mood AS ENUM ('a', 'b'); CREATE DOMAIN d AS varchar(9); \
         CREATE TABLE k1(k mood PRIMARY KEY, v int); CREATE TABLE k2(k d, j char(4), v int, PRIMARY KEY (k, j)); \
         CREATE TABLE k3(k int[] PRIMARY KEY, v int); CREATE TABLE k4(k bytea PRIMARY KEY, v int); \
         CREATE TABLE k5(k timestamptz PRIMARY KEY, v int); CREATE TABLE k6(k int4range PRIMARY KEY, v int)",
    )
    .await;
    let tables = ["k1", "k2", "k3", "k4", "k5", "k6"];
    stage
        .run(
            "INSERT INTO k1 VALUES ('a', 1), ('b', 1); INSERT INTO k2 VALUES ('x', 'y', 1), ('x', 'z ', 1); \
             INSERT INTO k3 VALUES ('{1,2}', 1), ('{}', 1); INSERT INTO k4 VALUES ('\\x00', 1), ('', 1); \
             INSERT INTO k5 VALUES ('2020-01-01', 1), ('infinity', 1); INSERT INTO k6 VALUES ('[1,2)', 1), ('empty', 1)",
        )
        .await;
    for table in tables {
        stage.run(&format!("UPDATE {table} SET v = v + 1")).await;
    }
    stage.apply_all().await;
    for table in tables {
        stage.assert_equal(&format!("SELECT * FROM {table}")).await;
    }
    for table in tables {
        stage.run(&format!("DELETE FROM {table}")).await;
    }
    stage.apply_all().await;
    for table in tables {
        assert!(stage.at_target(&format!("SELECT * FROM {table}")).await.is_empty(), "{table}");
    }
}

#[tokio::test]
async fn a_value_too_long_for_the_target_is_refused_and_the_plan_widens_the_column() {
    let mut stage = Stage::with_parts(
        "CREATE TABLE t(k int PRIMARY KEY, v varchar(20), n int8)",
        "CREATE TABLE t(k int PRIMARY KEY, v varchar(3), n int4)",
        "",
        1 << 20,
        |_| (),
    )
    .await;
    stage.run("INSERT INTO t VALUES (1, 'abc', 1)").await;
    stage.run("INSERT INTO t VALUES (2, 'abcdef', 1)").await;
    let (at, failure) = stage.first_failure().await.unwrap();
    assert_eq!(at, 1);
    assert_failure(&failure, Class::RowData, Code::RowDataInvalid);
    assert_eq!(failure.detail.sqlstate.as_deref(), Some("22001"));
    for statement in &failure.detail.remedy {
        stage.target.batch_execute(statement).await.unwrap();
    }
    assert_eq!(
        stage.at_target("SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 1").await,
        ["(\"character varying(20)\")", "(bigint)"]
    );
}

#[tokio::test]
async fn an_enum_label_that_the_target_lacks_comes_with_its_alter_type() {
    let mut stage = Stage::with_parts(
        "CREATE TYPE mood AS ENUM ('a', 'b', 'it''s'); CREATE TABLE t(k int PRIMARY KEY, m mood)",
        "CREATE TYPE mood AS ENUM ('a', 'b'); CREATE TABLE t(k int PRIMARY KEY, m mood)",
        "",
        1 << 20,
        |_| (),
    )
    .await;
    stage.run("INSERT INTO t VALUES (1, 'it''s')").await;
    let transactions = stage.received().await;
    let group = stage.group(&transactions);
    let trellara_actors::ports::ApplyOutcome::Failed { failure, .. } =
        stage.apply(&group, trellara_actors::ports::Applying::ChangeByChange).await
    else {
        panic!("the label is missing")
    };
    assert_failure(&failure, Class::SchemaContract, Code::ColumnTypeMismatch);
    assert_eq!(failure.detail.remedy, ["ALTER TYPE public.mood ADD VALUE IF NOT EXISTS 'it''s';"]);
    stage.target.batch_execute(&failure.detail.remedy[0]).await.unwrap();
    let outcome = stage.apply(&group, trellara_actors::ports::Applying::ChangeByChange).await;
    assert!(matches!(outcome, trellara_actors::ports::ApplyOutcome::Applied), "{outcome:?}");
    stage.assert_equal("SELECT * FROM t").await;
}
