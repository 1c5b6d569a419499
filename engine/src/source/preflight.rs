//! What `trellara preflight` looks at on the source side beyond what every start refuses. Reads only.

use trellara_actors::failure::Code;

use super::finding::Finding;
use super::publication::{self, qualified};
use super::{inspect, setup, slot};
use crate::postgres::Error;
use crate::postgres::ident::{identifier, literal};
use crate::postgres::replication::{Connection, Row};
use crate::settings::{SourceSettings, TableName};

pub(super) async fn findings(
    connection: &mut Connection,
    settings: &SourceSettings,
    instance: &str,
    from_now: bool,
) -> Result<Vec<Finding>, Error> {
    let mut findings = setup::findings(connection, settings, instance).await?;
    findings.extend(publications(connection, settings).await?);
    for table in &settings.tables {
        findings.extend(self::table(connection, settings, table).await?);
    }
    if slot::facts(connection, &settings.slot).await?.is_none() {
        findings.extend(before_the_slot(connection, settings, from_now).await?);
    }
    Ok(findings)
}

/// Transactions that a new slot has to wait for: those that have written, prepared ones included.
pub(super) async fn writers(connection: &mut Connection) -> Result<Vec<String>, Error> {
    let sql = "SELECT format('PID %s, application \"%s\", user %s, database %s, since %s', pid, \
               application_name, usename, datname, date_trunc('second', xact_start)) \
               FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid() \
               UNION ALL SELECT format('prepared transaction \"%s\", owner %s, database %s, since %s', gid, \
               owner, database, date_trunc('second', prepared)) FROM pg_prepared_xacts";
    let rows = connection.command(sql).await?;
    rows.iter().map(|row| row.text(0).map(str::to_owned)).collect()
}

async fn publications(connection: &mut Connection, settings: &SourceSettings) -> Result<Vec<Finding>, Error> {
    let found = publication::facts(connection, &settings.publications).await?;
    let missing = settings.publications.iter().filter(|name| !found.iter().any(|facts| facts.name == **name));
    let finding = |name: &String| {
        let what = format!("publication {} does not exist", identifier(name));
        let remedy = vec![publication::create_statement(name, &settings.tables)];
        if settings.create_publication {
            Finding::warning(Code::PublicationMissing, format!("{what}; the start makes it"), remedy)
        } else {
            Finding::blocking(Code::PublicationMissing, what, remedy)
        }
    };
    Ok(missing.map(finding).collect())
}

/// One table of the dataset.
async fn table(
    connection: &mut Connection,
    settings: &SourceSettings,
    table: &TableName,
) -> Result<Vec<Finding>, Error> {
    let name = qualified(table).to_string();
    let publications: Vec<_> = settings.publications.iter().map(|name| literal(name)).collect();
    let sql = format!(
        "SELECT c.relpersistence, EXISTS (SELECT 1 FROM pg_publication p WHERE p.pubname IN ({publications})), \
         EXISTS (SELECT 1 FROM pg_publication_tables t WHERE t.pubname IN ({publications}) \
         AND (t.schemaname, t.tablename) = ({schema}, {table}) \
         OR t.pubname IN ({publications}) AND EXISTS (SELECT 1 FROM pg_partition_tree(c.oid) leaf \
         WHERE leaf.isleaf AND leaf.relid <> c.oid AND leaf.relid = to_regclass(format('%I.%I', t.schemaname, \
         t.tablename)))), \
         c.relreplident = 'f' OR EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisvalid \
         AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident ELSE false END), \
         EXISTS (SELECT 1 FROM pg_publication p WHERE p.pubname IN ({publications}) \
         AND (p.pubupdate OR p.pubdelete)) \
         FROM pg_class c WHERE c.oid = to_regclass({name})",
        publications = publications.join(", "),
        schema = literal(&table.schema),
        table = literal(&table.name),
        name = literal(&name),
    );
    let rows = connection.command(&sql).await?;
    match rows.first() {
        Some(row) => judge_table(&name, settings, row),
        None => {
            let what = format!("table {name} does not exist at the source");
            Ok(vec![Finding::blocking(Code::SourceUnsupported, what, Vec::new())])
        }
    }
}

fn judge_table(name: &str, settings: &SourceSettings, row: &Row) -> Result<Vec<Finding>, Error> {
    let flag = |column| row.text(column).map(|text| text == "t");
    let (persistent, any_publication, published) = (row.text(0)? == "p", flag(1)?, flag(2)?);
    let (identified, changes_rows) = (flag(3)?, flag(4)?);
    let mut findings = Vec::new();
    if !persistent {
        let what = format!("table {name} is not logged, so it cannot be replicated");
        findings.push(Finding::blocking(
            Code::SourceUnsupported,
            what,
            vec![format!("ALTER TABLE {name} SET LOGGED;")],
        ));
    }
    if any_publication && !published {
        let what = format!("table {name} is in none of the flow's publications");
        let add =
            |publication: &String| format!("ALTER PUBLICATION {} ADD TABLE {name};", identifier(publication));
        let remedy = settings.publications.first().map(add).into_iter().collect();
        findings.push(Finding::blocking(Code::SourceUnsupported, what, remedy));
    }
    if !identified && (changes_rows || !any_publication) {
        let what =
            format!("table {name} has no replica identity: once published, its updates and deletes fail");
        let remedy = vec![format!("ALTER TABLE {name} REPLICA IDENTITY FULL;")];
        findings.push(Finding::warning(Code::SourceUnsupported, what, remedy));
    }
    Ok(findings)
}

/// What matters only as long as the flow has no slot.
async fn before_the_slot(
    connection: &mut Connection,
    settings: &SourceSettings,
    from_now: bool,
) -> Result<Vec<Finding>, Error> {
    let mut findings = room(connection).await?;
    let holding = inspect::with_rows(connection, &settings.tables).await?;
    if !holding.is_empty() {
        let tables = holding.join(", ");
        findings.push(if from_now {
            let what = format!("tables hold rows before the start, which are not copied: {tables}");
            Finding::warning(Code::TablesNotEmpty, what, Vec::new())
        } else {
            let what =
                format!("tables hold rows before the start, which only start: from_now accepts: {tables}");
            Finding::blocking(Code::TablesNotEmpty, what, Vec::new())
        });
    }
    for writer in writers(connection).await? {
        let what = format!("making the slot waits for {writer}");
        findings.push(Finding::warning(Code::Contention, what, Vec::new()));
    }
    Ok(findings)
}

/// Slots and walsenders that are left. The connection that asks is a walsender itself.
async fn room(connection: &mut Connection) -> Result<Vec<Finding>, Error> {
    let sql = "SELECT (SELECT count(*) FROM pg_replication_slots) >= \
               current_setting('max_replication_slots')::int, \
               (SELECT count(*) FROM pg_stat_replication) >= current_setting('max_wal_senders')::int";
    let rows = connection.command(sql).await?;
    let row = rows.first().ok_or(Error::Protocol("limits"))?;
    let mut findings = Vec::new();
    for (column, setting) in [(0, "max_replication_slots"), (1, "max_wal_senders")] {
        if row.text(column)? == "t" {
            let what = format!("{setting} is used up; raising it needs a restart");
            findings.push(Finding::blocking(Code::SourceUnsupported, what, Vec::new()));
        }
    }
    Ok(findings)
}
