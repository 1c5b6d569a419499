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

use crate::postgres::Error;
use crate::postgres::ident::identifier;
use crate::postgres::replication::Connection;

/// A cancel request that arrives before its command does nothing, so it is repeated.
const CANCEL_INTERVAL: Duration = Duration::from_millis(500);

/// The server's own limit, `lock_timeout`, should speak first: its error says more.
const GRACE: Duration = Duration::from_secs(2);

/// How long giving up may take.
const CANCEL_PATIENCE: Duration = Duration::from_secs(10);

type Answer = Result<Lsn, Error>;

/// Makes the slot and returns its consistent point.
///
/// # Errors
/// The server's refusal, or `wait` went by; no slot is left behind.
///
/// # Cancel safety
/// Dropping the future gives the creation up in the background; no slot is left behind.
pub(super) async fn create(connection: Connection, slot: &str, wait: Duration) -> Answer {
    let (answer, answered) = oneshot::channel();
    let (taken, is_taken) = oneshot::channel();
    let creation = tokio::spawn(see_through(connection, slot.to_owned(), answer, is_taken));
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
    answer: oneshot::Sender<Answer>,
    mut is_taken: oneshot::Receiver<()>,
) {
    let cancel = connection.cancel_handle();
    let mut making = Box::pin(make(&mut connection, &slot));
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
    let exists = made.is_ok();
    let _ = answer.send(made);
    if exists && (abandoned || is_taken.await.is_err()) {
        // Only a broken connection keeps this from working; then the next start finds and names the slot.
        let _ = connection.command(&format!("DROP_REPLICATION_SLOT {}", identifier(&slot))).await;
    }
}

async fn make(connection: &mut Connection, slot: &str) -> Answer {
    let command =
        format!("CREATE_REPLICATION_SLOT {} LOGICAL pgoutput (SNAPSHOT 'nothing')", identifier(slot));
    let rows = connection.command(&command).await?;
    rows.first().ok_or(Error::Protocol("answer to CREATE_REPLICATION_SLOT"))?.parse(1)
}
