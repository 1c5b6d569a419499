//! Reads the facts of one target table from its catalog, in one round of pipelined queries.

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row};
use trellara_storage::RelationDigest;
use xxhash_rust::xxh3::xxh3_128;

use super::table::{
    DeferrableKey, Identity, TargetColumn, TargetObject, TargetTable, Triggers, UniqueIndex, ValueForm,
};
use crate::settings::TableName;

const TABLE: &str = "
SELECT c.oid, c.relkind::text,
       EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgenabled IN ('R', 'A')),
       EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgenabled IN ('O', 'A')),
       EXISTS (SELECT FROM pg_constraint k WHERE k.condeferrable AND c.oid IN (k.conrelid, k.confrelid))
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = $1 AND c.relname = $2";

const SCHEMA: &str = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)";

/// The base type is what is left when all domains are taken off; its equality is that of an index.
const COLUMNS: &str = "
SELECT a.attname::text, a.attnum, format_type(a.atttypid, a.atttypmod), a.attnotnull OR d.not_null,
       a.atthasdef OR d.has_default, a.attidentity::text, a.attgenerated::text,
       b.oid, a.atttypmod, b.typname::text, b.typcategory::text, format_type(b.oid, -1),
       b.typcategory = 'A' OR b.typtype = 'c' OR b.typarray = 0, b.typdelim::text,
       CASE WHEN b.typtype = 'c' THEN NULL ELSE (
         SELECT CASE WHEN n.nspname = 'pg_catalog' OR e.oid <> b.oid THEN '='
                ELSE format('OPERATOR(%I.%s)', n.nspname, p.oprname) END
           FROM pg_type e
           JOIN pg_opclass o ON o.opcdefault AND (
                o.opcintype = e.oid
                OR (e.typtype = 'e' AND o.opcintype = 'anyenum'::regtype)
                OR (e.typtype = 'r' AND o.opcintype = 'anyrange'::regtype)
                OR (e.typtype = 'm' AND o.opcintype = 'anymultirange'::regtype)
                OR EXISTS (SELECT FROM pg_cast k WHERE k.castsource = e.oid AND k.casttarget = o.opcintype
                            AND k.castmethod = 'b' AND k.castcontext = 'i'))
           JOIN pg_am m ON m.oid = o.opcmethod AND m.amname IN ('btree', 'hash')
           JOIN pg_amop x ON x.amopfamily = o.opcfamily AND x.amoplefttype = o.opcintype
                AND x.amoprighttype = o.opcintype
                AND x.amopstrategy = CASE m.amname WHEN 'btree' THEN 3 ELSE 1 END
           JOIN pg_operator p ON p.oid = x.amopopr JOIN pg_namespace n ON n.oid = p.oprnamespace
          WHERE e.oid = CASE WHEN b.typcategory = 'A' AND b.typelem <> 0 THEN b.typelem ELSE b.oid END
          ORDER BY o.opcintype = e.oid DESC, m.amname LIMIT 1) END,
       EXISTS (SELECT FROM pg_index i
                WHERE i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY (i.indkey))
  FROM pg_attribute a
 CROSS JOIN LATERAL (
   WITH RECURSIVE chain AS (
     SELECT t.oid, t.typbasetype, t.typnotnull, t.typdefault IS NOT NULL AS has_default
       FROM pg_type t WHERE t.oid = a.atttypid
     UNION ALL
     SELECT t.oid, t.typbasetype, t.typnotnull, t.typdefault IS NOT NULL
       FROM chain JOIN pg_type t ON t.oid = chain.typbasetype)
   SELECT max(oid) FILTER (WHERE typbasetype = 0) AS base, bool_or(typnotnull) AS not_null,
          bool_or(has_default) AS has_default FROM chain) d
  JOIN pg_type b ON b.oid = d.base
 WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attnum";

const INDEXES: &str = "
SELECT c.relname::text,
       (SELECT array_agg(k.number ORDER BY k.n) FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(number, n)
         WHERE k.n <= i.indnkeyatts),
       i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL,
       i.indpred IS NOT NULL OR i.indexprs IS NOT NULL
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
 WHERE i.indrelid = $1 AND (i.indisunique OR i.indisexclusion)
 ORDER BY i.indisprimary DESC, i.indexrelid";

/// Those that a replica session does not enforce. Without operators of its own a constraint is unique.
const DEFERRABLE_KEYS: &str = "
SELECT k.conname::text, k.conkey,
       (SELECT array_agg(format('OPERATOR(%I.%s)', n.nspname, o.oprname) ORDER BY x.i)
          FROM unnest(k.conexclop) WITH ORDINALITY x(operator, i)
          JOIN pg_operator o ON o.oid = x.operator JOIN pg_namespace n ON n.oid = o.oprnamespace)
  FROM pg_constraint k JOIN pg_index i ON i.indexrelid = k.conindid
 WHERE k.conrelid = $1 AND k.condeferrable AND k.contype IN ('p', 'u', 'x')
   AND i.indexprs IS NULL AND i.indpred IS NULL
 ORDER BY k.conname";

/// What `name` is at the target, at this moment.
///
/// # Errors
/// Whatever the server or the connection says.
pub async fn read(client: &Client, name: &TableName) -> Result<TargetObject, Error> {
    let Some(head) = client.query_opt(TABLE, &[&name.schema, &name.name]).await? else {
        let schema_exists = client.query_one(SCHEMA, &[&name.schema]).await?.try_get(0)?;
        return Ok(TargetObject::Missing { schema_exists });
    };
    let kind: &str = head.try_get(1)?;
    if !matches!(kind, "r" | "p") {
        return Ok(TargetObject::NotATable);
    }
    let oid: u32 = head.try_get(0)?;
    let of_table: &[&(dyn ToSql + Sync)] = &[&oid];
    let (columns, indexes, keys) = tokio::try_join!(
        client.query(COLUMNS, of_table),
        client.query(INDEXES, of_table),
        client.query(DEFERRABLE_KEYS, of_table),
    )?;
    let mut table = TargetTable {
        name: name.clone(),
        oid,
        partitioned: kind == "p",
        columns: columns.iter().map(column).collect::<Result<_, _>>()?,
        indexes: indexes.iter().map(index).collect::<Result<_, _>>()?,
        deferrable: head.try_get(4)?,
        deferrable_keys: keys.iter().map(deferrable_key).collect::<Result<_, _>>()?,
        triggers: Triggers { in_replica: head.try_get(2)?, in_origin: head.try_get(3)? },
        digest: RelationDigest::default(),
    };
    table.digest = digest(&table);
    Ok(TargetObject::Table(Box::new(table)))
}

fn column(row: &Row) -> Result<TargetColumn, Error> {
    let identity: &str = row.try_get(5)?;
    let generated: &str = row.try_get(6)?;
    Ok(TargetColumn {
        name: row.try_get(0)?,
        number: row.try_get(1)?,
        declared: row.try_get(2)?,
        not_null: row.try_get(3)?,
        has_default: row.try_get(4)?,
        identity: match identity {
            "a" => Identity::Always,
            "d" => Identity::ByDefault,
            _ => Identity::None,
        },
        generated: !generated.is_empty(),
        base_oid: row.try_get(7)?,
        modifier: row.try_get(8)?,
        base_name: row.try_get(9)?,
        category: character(row.try_get(10)?),
        value: ValueForm {
            sql_type: row.try_get(11)?,
            as_text: row.try_get(12)?,
            delimiter: character(row.try_get(13)?),
            equality: row.try_get(14)?,
        },
        primary_key: row.try_get(15)?,
    })
}

fn index(row: &Row) -> Result<UniqueIndex, Error> {
    Ok(UniqueIndex {
        name: row.try_get(0)?,
        columns: row.try_get(1)?,
        usable: row.try_get(2)?,
        opaque: row.try_get(3)?,
    })
}

fn deferrable_key(row: &Row) -> Result<DeferrableKey, Error> {
    let numbers: Vec<i16> = row.try_get(1)?;
    let operators: Option<Vec<String>> = row.try_get(2)?;
    let operators = operators.unwrap_or_else(|| vec!["=".to_owned(); numbers.len()]);
    Ok(DeferrableKey { constraint: row.try_get(0)?, columns: numbers.into_iter().zip(operators).collect() })
}

fn character(text: &str) -> char {
    text.chars().next().unwrap_or(' ')
}

fn digest(table: &TargetTable) -> RelationDigest {
    use std::fmt::Write;
    let mut text = format!("{}\0{}\0", table.name.schema, table.name.name);
    for column in &table.columns {
        write!(text, "{}\0{}\0{}\0", column.name, column.declared, column.not_null).expect("into a String");
    }
    for index in &table.indexes {
        write!(text, "{:?}\0{}\0", index.columns, index.usable).expect("into a String");
    }
    RelationDigest::new(xxh3_128(text.as_bytes()).to_be_bytes())
}
