//! Appends to the audit trail, one at a time, because each record carries the hash of the one before.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::LogHandle;
use crate::families::audit;
use crate::records::AuditRecord;
use crate::{Batch, Error};

/// The one way into the `audit` family while the engine runs.
#[derive(Clone, Debug)]
pub struct AuditTrail {
    log: LogHandle,
    turn: Arc<Mutex<()>>,
}

impl AuditTrail {
    /// There must be one per store; clones share its turn.
    pub fn new(log: LogHandle) -> Self {
        Self { log, turn: Arc::default() }
    }

    /// Returns the record's sequence number once it is fsynced.
    ///
    /// # Errors
    /// As `FlowLogHandle::submit`, `ReadFailed`, `Corruption`.
    ///
    /// # Cancel safety
    /// The record may be written or not; the chain stays whole.
    pub async fn append(&self, record: AuditRecord) -> Result<u64, Error> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let log = self.log.clone();
        // A task of its own: a cancelled caller must not free the turn before the record is written.
        let appended = tokio::spawn(async move {
            let _turn = turn;
            let (batch, sequence) = log
                .read(move |store| {
                    let mut batch = Batch::new();
                    audit::append(store, &mut batch, &record).map(|sequence| (batch, sequence))
                })
                .await?;
            log.for_store().submit(batch).await?.await?;
            Ok(sequence)
        });
        appended.await.unwrap_or(Err(Error::Closed))
    }
}
