//! Making the flow's slot, once per incarnation.
//!
//! The one danger is a slot that nobody knows of: it holds the source's WAL forever. Making one waits for
//! every transaction that has written anywhere in the cluster, and a closed socket does not end that wait.
//! So a task of its own sees the command through to its end: when the caller is gone it cancels, and drops
//! what was made all the same.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;
use trellara_storage::Lsn;

use super::inspect::with_rows;
use crate::postgres::Error;
use crate::postgres::ident::{identifier, literal};
use crate::postgres::replication::Connection;
use crate::settings::TableName;

/// A cancel request that arrives before its command does nothing, so it is repeated.
const CANCEL_INTERVAL: Duration = Duration::from_millis(500);

/// The server's own limit, `lock_timeout`, should speak first: its error says more.
const GRACE: Duration = Duration::from_secs(2);

/// How long giving up may take.
const CANCEL_PATIENCE: Duration = Duration::from_secs(10);

/// How often the source is asked whether the slot's snapshot may be read.
const GUARD_INTERVAL: Duration = Duration::from_millis(10);

type Answer = Result<Made, Error>;

/// What became of the slot.
#[derive(Debug)]
pub(super) enum Made {
    /// Its consistent point.
    Slot(Lsn),
    /// These tables hold rows from before it, which the stream would never send. There is no slot.
    NotEmpty(Vec<String>),
}

/// Tables that have to be empty at the slot's consistent point: looked at in the slot's own snapshot, so
/// that no row can slip in between the look and the point.
#[derive(Debug)]
pub(super) struct Emptiness {
    pub(super) tables: Vec<TableName>,
    /// Another session, that tells when the snapshot may be read.
    pub(super) guard: Connection,
}

/// Makes the slot.
///
/// # Errors
/// The server's refusal, or `wait` went by; no slot is left behind.
///
/// # Cancel safety
/// Dropping the future gives the creation up in the background; no slot is left behind.
pub(super) async fn create(
    connection: Connection,
    slot: &str,
    emptiness: Option<Emptiness>,
    wait: Duration,
) -> Answer {
    let (answer, answered) = oneshot::channel();
    let (taken, is_taken) = oneshot::channel();
    let creation = tokio::spawn(see_through(connection, slot.to_owned(), emptiness, answer, is_taken));
    match timeout(wait + GRACE, answered).await {
        Ok(Ok(made)) => {
            // No wait in between: whoever gets this answer has the slot.
            let _ = taken.send(());
            made
        }
        Ok(Err(_)) => Err(Error::Protocol("creation of the slot ended without an answer")),
        Err(_) => {
            drop(taken);
            let _ = timeout(CANCEL_PATIENCE, creation).await;
            Err(Error::TimedOut("transactions that have to end before the slot can be made"))
        }
    }
}

async fn see_through(
    mut connection: Connection,
    slot: String,
    emptiness: Option<Emptiness>,
    answer: oneshot::Sender<Answer>,
    mut is_taken: oneshot::Receiver<()>,
) {
    let cancel = connection.cancel_handle();
    let mut making = Box::pin(make(&mut connection, &slot, emptiness));
    let (made, abandoned) = tokio::select! {
        biased;
        made = &mut making => (made, false),
        _gone = &mut is_taken => loop {
            // An undelivered request is repeated like an early one.
            let _ = cancel.cancel().await;
            if let Ok(made) = timeout(CANCEL_INTERVAL, &mut making).await {
                break (made, true);
            }
        },
    };
    drop(making);
    let exists = matches!(made, Ok(Made::Slot(_)));
    let _ = answer.send(made);
    if exists && (abandoned || is_taken.await.is_err()) {
        // Only a broken connection keeps this from working; then the next start finds and names the slot.
        let _ = connection.command(&format!("DROP_REPLICATION_SLOT {}", identifier(&slot))).await;
    }
}

async fn make(connection: &mut Connection, slot: &str, emptiness: Option<Emptiness>) -> Answer {
    let Some(mut emptiness) = emptiness else {
        return Ok(Made::Slot(create_slot(connection, slot, "nothing").await?));
    };
    connection.command("SET client_encoding = 'UTF8'").await?;
    connection.command("BEGIN READ ONLY ISOLATION LEVEL REPEATABLE READ").await?;
    let consistent_point = create_slot(connection, slot, "use").await?;
    let looked = look(connection, &mut emptiness).await;
    let ended = connection.command("ROLLBACK").await;
    match looked.and_then(|found| ended.map(|_| found)) {
        Ok(found) if found.is_empty() => Ok(Made::Slot(consistent_point)),
        other => {
            connection.command(&format!("DROP_REPLICATION_SLOT {}", identifier(slot))).await?;
            other.map(Made::NotEmpty)
        }
    }
}

async fn create_slot(connection: &mut Connection, slot: &str, snapshot: &str) -> Result<Lsn, Error> {
    let command =
        format!("CREATE_REPLICATION_SLOT {} LOGICAL pgoutput (SNAPSHOT '{snapshot}')", identifier(slot));
    let rows = connection.command(&command).await?;
    rows.first().ok_or(Error::Protocol("answer to CREATE_REPLICATION_SLOT"))?.parse(1)
}

/// A slot's snapshot can be ahead of the source's own commit status. Whoever reads through it meanwhile
/// sets wrong hint bits and loses committed rows at the source, so no table is read before every
/// transaction that the snapshot shows has ended for everyone.
async fn look(connection: &mut Connection, emptiness: &mut Emptiness) -> Result<Vec<String>, Error> {
    let rows = connection.command("SELECT pg_current_snapshot()").await?;
    let snapshot = rows.first().ok_or(Error::Protocol("answer to pg_current_snapshot"))?.text(0)?.to_owned();
    let running = format!(
        "SELECT 1 FROM pg_snapshot_xip(pg_current_snapshot()) x \
         WHERE pg_visible_in_snapshot(x, {}::pg_snapshot) LIMIT 1",
        literal(&snapshot)
    );
    while !emptiness.guard.command(&running).await?.is_empty() {
        tokio::time::sleep(GUARD_INTERVAL).await;
    }
    with_rows(connection, &emptiness.tables).await
}
