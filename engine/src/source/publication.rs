//! Publications: which there are, what they publish as one digest, and making the flow's own.

use trellara_actors::failure::{Class, Code, Failure, Place, classify};
use trellara_actors::ports::PublicationFacts;

use super::finding::Finding;
use crate::postgres::Error;
use crate::postgres::ident::{Qualified, identifier, literal};
use crate::postgres::replication::{Connection, Row};
use crate::settings::{SourceSettings, TableName};

/// The first version whose publications tell about generated columns.
const VERSION_18: u32 = 180_000;

/// The wanted publications that exist, by name.
pub(super) async fn facts(
    connection: &mut Connection,
    names: &[String],
) -> Result<Vec<PublicationFacts>, Error> {
    let rows = connection.command(&facts_sql(connection.server_version(), names)).await?;
    let facts = |row: &Row| {
        Ok(PublicationFacts {
            name: row.text(0)?.to_owned(),
            oid: row.parse(1)?,
            digest: row.text(2)?.to_owned(),
        })
    };
    rows.iter().map(facts).collect()
}

/// The digest covers the definition, not the tables that it comes to at this moment: a new table under
/// `FOR ALL TABLES` is no change of the publication.
fn facts_sql(version: u32, names: &[String]) -> String {
    let names: Vec<_> = names.iter().map(|name| literal(name)).collect();
    let generated = if version >= VERSION_18 { ", p.pubgencols" } else { "" };
    format!(
        "SELECT p.pubname, p.oid, encode(sha256(convert_to(concat_ws('|', p.puballtables, p.pubinsert, \
         p.pubupdate, p.pubdelete, p.pubtruncate, p.pubviaroot{generated}, \
         (SELECT string_agg(concat_ws(':', r.prrelid, coalesce(r.prattrs::text, '*'), \
         coalesce(pg_get_expr(r.prqual, r.prrelid), '')), ';' ORDER BY r.prrelid) \
         FROM pg_publication_rel r WHERE r.prpubid = p.oid), \
         (SELECT 'schemas ' || string_agg(s.pnnspid::text, ',' ORDER BY s.pnnspid) \
         FROM pg_publication_namespace s WHERE s.pnpubid = p.oid)), 'UTF8')), 'hex') \
         FROM pg_publication p WHERE p.pubname IN ({}) ORDER BY p.pubname",
        names.join(", ")
    )
}

/// The statement that makes a publication for the dataset.
pub(super) fn create_statement(name: &str, tables: &[TableName]) -> String {
    let tables: Vec<_> = tables.iter().map(|table| qualified(table).to_string()).collect();
    format!("CREATE PUBLICATION {} FOR TABLE {};", identifier(name), tables.join(", "))
}

/// Makes the flow's publication where it is missing. Before the slot, or its changes are not sent.
///
/// # Errors
/// What the source answers; where it is a matter of rights or of set-up, with the statement to run.
pub(super) async fn ensure(
    connection: &mut Connection,
    settings: &SourceSettings,
    found: &[PublicationFacts],
) -> Result<bool, Failure> {
    let [name] = settings.publications.as_slice() else { return Ok(false) };
    if !settings.create_publication || !found.is_empty() {
        return Ok(false);
    }
    let statement = create_statement(name, &settings.tables);
    match connection.command(&statement).await {
        Ok(_) => Ok(true),
        Err(error) => {
            let said = error.to_string();
            let failure = classify(Place::SourceConnect, error.into_facts());
            match failure.class {
                Class::Transient => Err(failure),
                Class::Endpoint(_)
                | Class::RowData
                | Class::SchemaContract
                | Class::Integrity
                | Class::Lineage
                | Class::Fence
                | Class::Defect
                | Class::Unknown => Err(not_made(name, &said, statement).into_failure()),
            }
        }
    }
}

fn not_made(name: &str, said: &str, statement: String) -> Finding {
    let what = format!("publication {} is missing and could not be made: {said}", identifier(name));
    Finding::blocking(Code::SourceUnsupported, what, vec![statement])
}

pub(super) fn qualified(table: &TableName) -> Qualified<'_> {
    Qualified { schema: &table.schema, name: &table.name }
}
