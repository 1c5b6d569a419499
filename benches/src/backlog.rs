//! What piles up at the source before a contest: the workloads w1, w2 and w3.
//!
//! Each ends with one marker row in a transaction of its own; in commit order, whoever shows the marker has it all.

use anyhow::{Context as _, Result};
use tokio_postgres::{Client, Config};
use trellara_scenarios::session;

/// One kind of backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backlog {
    /// 100,000 transactions of one insert.
    W1,
    /// 50,000 transactions of two updates in a table of 100,000 rows and one insert.
    W2,
    /// One transaction of 1,000,000 inserts.
    W3,
}

impl Backlog {
    pub const ALL: [Backlog; 3] = [Backlog::W1, Backlog::W2, Backlog::W3];

    pub const fn name(self) -> &'static str {
        match self {
            Backlog::W1 => "w1",
            Backlog::W2 => "w2",
            Backlog::W3 => "w3",
        }
    }

    /// Rows that both sides hold before it begins.
    pub const fn standing_rows(self) -> u32 {
        match self {
            Backlog::W2 => 100_000,
            Backlog::W1 | Backlog::W3 => 0,
        }
    }

    /// Piles it up. `round` keeps the keys of several apart.
    ///
    /// # Errors
    /// The source refused a statement.
    pub async fn pile_up(self, source: &Config, round: i64) -> Result<Piled> {
        let client = session::open(source).await?;
        client.batch_execute("SET synchronous_commit = off").await?;
        client.batch_execute(&self.sql(round * 10_000_000)).await.context("piling the backlog up")?;
        let before = position(&client).await?;
        let marker = -round;
        client.batch_execute(&format!("INSERT INTO entries VALUES ({marker}, 'end')")).await?;
        client.batch_execute("SET synchronous_commit = on; SELECT txid_current()").await?;
        Ok(Piled { marker, before_marker: before, end: position(&client).await? })
    }

    fn sql(self, first: i64) -> String {
        match self {
            Backlog::W1 => format!(
                "DO $$ BEGIN FOR n IN 1..100000 LOOP
                     INSERT INTO entries VALUES ({first} + n, repeat('x', 80)); COMMIT;
                 END LOOP; END $$"
            ),
            Backlog::W2 => format!(
                "DO $$ BEGIN FOR n IN 1..50000 LOOP
                     UPDATE accounts SET amount = amount + 1 WHERE id = 1 + (n::bigint * 7919) % 100000;
                     UPDATE accounts SET amount = amount - 1 WHERE id = 1 + (n::bigint * 104729) % 100000;
                     INSERT INTO entries VALUES ({first} + n, repeat('x', 80)); COMMIT;
                 END LOOP; END $$"
            ),
            Backlog::W3 => format!(
                "INSERT INTO entries SELECT {first} + n, repeat('x', 80) FROM generate_series(1, 1000000) n"
            ),
        }
    }
}

/// Where a backlog ends.
#[derive(Clone, Debug)]
pub struct Piled {
    /// Key of the last row.
    pub marker: i64,
    /// The marker's commit lies beyond this position, everything else before it.
    pub before_marker: u64,
    /// Beyond the marker.
    pub end: u64,
}

async fn position(client: &Client) -> Result<u64> {
    let row = client.query_one("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint", &[]).await?;
    Ok(u64::try_from(row.try_get::<_, i64>(0)?)?)
}
