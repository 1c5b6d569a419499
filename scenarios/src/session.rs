//! A client session on a test database, with its driver task.
//!
//! Sessions come back with every setting at its default; a dead one is opened again by whoever needs it.

use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio_postgres::{Client, Config, NoTls};

const OPEN_LIMIT: Duration = Duration::from_secs(10);

/// # Errors
/// The server does not take the connection, or not in time.
pub async fn open(config: &Config) -> Result<Client> {
    let (client, driver) = tokio::time::timeout(OPEN_LIMIT, config.connect(NoTls))
        .await
        .context("connecting took too long")?
        .context("connecting")?;
    // Its end is seen by the client's next statement.
    drop(tokio::spawn(driver));
    Ok(client)
}

/// Opens a session for one script.
///
/// # Errors
/// No connection, or the script failed.
pub async fn script(config: &Config, sql: &str) -> Result<()> {
    open(config).await?.batch_execute(sql).await.with_context(|| format!("running {sql}"))
}
