//! Everything that the lineage check reads, in one connection.

use trellara_actors::failure::{Failure, Place, classify};
use trellara_actors::ports::SourceFacts;
use trellara_storage::{Lsn, Timestamp};

use super::publication::{self, qualified};
use super::{setup, slot};
use crate::postgres::Error;
use crate::postgres::ident::literal;
use crate::postgres::replication::Connection;
use crate::settings::{SourceSettings, TableName};

/// IDENTIFY_SYSTEM.
struct Identity {
    system_identifier: u64,
    timeline: u32,
    position: Lsn,
}

/// # Errors
/// The source does not answer, or is not set up for a flow.
pub(super) async fn inspect(
    connection: &mut Connection,
    settings: &SourceSettings,
    instance: &str,
) -> Result<SourceFacts, Failure> {
    let identity = identify(connection).await.map_err(failed)?;
    let timeline_history = timeline_history(connection, identity.timeline).await.map_err(failed)?;
    let setup = setup::findings(connection, settings, instance).await.map_err(failed)?;
    if let Some(finding) = setup.into_iter().next() {
        return Err(finding.into_failure());
    }
    let slot = slot::facts(connection, &settings.slot).await.map_err(failed)?;
    let mut publications = publication::facts(connection, &settings.publications).await.map_err(failed)?;
    let mut tables_with_rows = Vec::new();
    if slot.is_none() {
        if publication::ensure(connection, settings, &publications).await? {
            publications = publication::facts(connection, &settings.publications).await.map_err(failed)?;
        }
        tables_with_rows = with_rows(connection, &settings.tables).await.map_err(failed)?;
    }
    Ok(SourceFacts {
        system_identifier: identity.system_identifier,
        timeline: identity.timeline,
        timeline_history,
        position: identity.position,
        server_version: connection.server_version(),
        encoding: connection.encoding().to_owned(),
        slot,
        publications,
        tables_with_rows,
        now: now(connection).await.map_err(failed)?,
    })
}

fn failed(error: Error) -> Failure {
    classify(Place::SourceConnect, error.into_facts())
}

async fn identify(connection: &mut Connection) -> Result<Identity, Error> {
    let rows = connection.command("IDENTIFY_SYSTEM").await?;
    let row = rows.first().ok_or(Error::Protocol("answer to IDENTIFY_SYSTEM"))?;
    Ok(Identity { system_identifier: row.parse(0)?, timeline: row.parse(1)?, position: row.parse(2)? })
}

/// The first timeline has no history file.
async fn timeline_history(connection: &mut Connection, timeline: u32) -> Result<Vec<(u32, Lsn)>, Error> {
    if timeline <= 1 {
        return Ok(Vec::new());
    }
    let rows = connection.command(&format!("TIMELINE_HISTORY {timeline}")).await?;
    let row = rows.first().ok_or(Error::Protocol("answer to TIMELINE_HISTORY"))?;
    read_history(row.text(1)?)
}

/// Lines of `timeline`, the position where it ended, and a reason; comments begin with `#`.
fn read_history(text: &str) -> Result<Vec<(u32, Lsn)>, Error> {
    let malformed = || Error::Protocol("timeline history");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entry = |line: &str| {
        let mut words = line.split_whitespace();
        let timeline = words.next().and_then(|word| word.parse().ok()).ok_or_else(malformed)?;
        let end = words.next().and_then(|word| word.parse().ok()).ok_or_else(malformed)?;
        Ok((timeline, end))
    };
    lines.map(entry).collect()
}

/// Tables of the dataset that hold rows. Where the role may not look inside, a table with storage counts as
/// holding rows: what cannot be proven empty is not empty.
pub(super) async fn with_rows(
    connection: &mut Connection,
    tables: &[TableName],
) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    for table in tables {
        let name = qualified(table).to_string();
        let sql = format!(
            "SELECT has_table_privilege(c.oid, 'SELECT'), \
             coalesce((SELECT sum(pg_relation_size(relid)) FROM pg_partition_tree(c.oid)), \
             pg_relation_size(c.oid)) > 0 FROM pg_class c WHERE c.oid = to_regclass({})",
            literal(&name)
        );
        let rows = connection.command(&sql).await?;
        // A table that does not exist holds no rows; preflight names it.
        let Some(row) = rows.first() else { continue };
        let (readable, has_storage) = (row.text(0)? == "t", row.text(1)? == "t");
        let holds_rows = has_storage
            && (!readable || !connection.command(&format!("SELECT 1 FROM {name} LIMIT 1")).await?.is_empty());
        if holds_rows {
            found.push(name);
        }
    }
    Ok(found)
}

async fn now(connection: &mut Connection) -> Result<Timestamp, Error> {
    let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8";
    let rows = connection.command(sql).await?;
    let row = rows.first().ok_or(Error::Protocol("the source's clock"))?;
    Ok(Timestamp::from_unix_micros(row.parse(0)?))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed expectation in a test is a failed test")]

    use super::*;

    #[test]
    fn a_timeline_history_reads_as_postgresql_writes_it() {
        let text = "1\t0/3000148\tno recovery target specified\n\n2\t0/5000000\tbefore 2026-01-01\n";
        let history = read_history(text).unwrap();
        assert_eq!(history, [(1, "0/3000148".parse().unwrap()), (2, "0/5000000".parse().unwrap())]);
        assert!(read_history("x 0/1 y").is_err());
        assert!(read_history("1").is_err());
    }
}
