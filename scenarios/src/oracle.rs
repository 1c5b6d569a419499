//! Judges of what arrived: contents equal, nothing twice.
//!
//! Both sides must be at rest and the target at the source's end (`flow_through` sees to that); otherwise a
//! difference means nothing. The oracles read the databases themselves and never ask the engine.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio_postgres::Client;

use crate::fleet::{Store, TABLES};
use crate::{session, wait};

const SHOWN_ROWS: usize = 3;

/// Where the two sides of one table differ, as multisets of rows.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Difference {
    pub table: String,
    pub rows: usize,
    /// Rows (with how often) that the source holds and the target does not.
    pub missing: Vec<(String, usize)>,
    /// Rows that the target holds beyond the source.
    pub extra: Vec<(String, usize)>,
}

impl Difference {
    pub fn is_none(&self) -> bool {
        self.missing.is_empty() && self.extra.is_empty()
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} missing, {} extra", self.table, self.missing.len(), self.extra.len())?;
        for (what, rows) in [("missing", &self.missing), ("extra", &self.extra)] {
            for (row, times) in rows.iter().take(SHOWN_ROWS) {
                let short: String = row.chars().take(120).collect();
                write!(formatter, "\n  {what} {times}x {short}")?;
            }
        }
        Ok(())
    }
}

/// Compares every table of a store row by row; empty when the contents are equal.
///
/// # Errors
/// A side could not be read. A column that the target lacks is such an error.
pub async fn contents(store: &Store) -> Result<(usize, Vec<Difference>)> {
    let source = session::open(&store.source).await?;
    let target = session::open(&store.target).await?;
    let mut rows = 0;
    let mut differences = Vec::new();
    for table in TABLES {
        let columns = columns(&source, table).await?;
        let expected = read(&source, &columns, table).await.context("reading the source")?;
        let found = read(&target, &columns, &format!("{}.{table}", store.schema))
            .await
            .context("reading the target")?;
        rows += expected.values().sum::<usize>();
        let difference = compare(table, &expected, &found);
        if !difference.is_none() {
            differences.push(difference);
        }
    }
    Ok((rows, differences))
}

/// Counters of a store's keyless ledger that the target holds more than once.
///
/// # Errors
/// The target could not be read.
pub async fn counted_twice(store: &Store) -> Result<Vec<i64>> {
    let target = session::open(&store.target).await?;
    let sql = format!(
        "SELECT counter FROM {}.payments GROUP BY counter HAVING count(*) > 1 ORDER BY counter",
        store.schema
    );
    Ok(target.query(&sql, &[]).await?.iter().map(|row| row.get(0)).collect())
}

/// Writes a last transaction at the source and waits until the target shows it. Because a flow keeps commit order,
/// all that was committed before it is there then.
///
/// # Errors
/// It did not arrive within `within`.
pub async fn flow_through(store: &Store, within: Duration) -> Result<()> {
    let what = format!("a last row of {} at the target", store.id);
    let source = session::open(&store.source).await?;
    let sql = "INSERT INTO payments (counter, sale_id, method, amount) \
               SELECT least(coalesce(min(counter), 0), 0) - 1, 0, 'probe', 0 FROM payments RETURNING counter";
    let counter: i64 = source.query_one(sql, &[]).await?.try_get(0)?;
    arrived(store, counter, &what, within).await
}

async fn arrived(store: &Store, counter: i64, what: &str, within: Duration) -> Result<()> {
    let sql = format!("SELECT 1 FROM {}.payments WHERE counter = $1", store.schema);
    let mut target = None;
    wait::until(what, within, async || {
        let client = match target.take() {
            Some(client) => client,
            None => session::open(&store.target).await?,
        };
        let found = client.query_opt(&sql, &[&counter]).await?;
        target = Some(client);
        Ok(found.map(|_| ()))
    })
    .await
}

async fn columns(source: &Client, table: &str) -> Result<String> {
    let sql = "SELECT string_agg(format('%I', attname), ', ' ORDER BY attnum) FROM pg_attribute \
               WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped";
    Ok(source.query_one(sql, &[&table]).await?.try_get(0)?)
}

async fn read(client: &Client, columns: &str, table: &str) -> Result<HashMap<String, usize>> {
    let sql = format!("SELECT ROW({columns})::text FROM {table}");
    let mut rows = HashMap::new();
    for row in client.query(&sql, &[]).await? {
        *rows.entry(row.try_get::<_, String>(0)?).or_insert(0) += 1;
    }
    Ok(rows)
}

fn compare(table: &str, expected: &HashMap<String, usize>, found: &HashMap<String, usize>) -> Difference {
    Difference {
        table: table.to_owned(),
        rows: expected.values().sum(),
        missing: beyond(expected, found),
        extra: beyond(found, expected),
    }
}

/// What `these` hold beyond `those`.
fn beyond(these: &HashMap<String, usize>, those: &HashMap<String, usize>) -> Vec<(String, usize)> {
    let mut rows: Vec<(String, usize)> = these
        .iter()
        .map(|(row, times)| (row.clone(), times.saturating_sub(those.get(row).copied().unwrap_or(0))))
        .filter(|(_, times)| *times > 0)
        .collect();
    rows.sort();
    rows
}
