//! `store recover`: opens a damaged log up to the damage, on request only.
//!
//! What comes behind the damage is lost here and may have been acknowledged to a source. Every flow is
//! marked in the same step, and a marked flow neither confirms nor applies before its lineage check says
//! that nothing is missing.

use std::path::Path;

use super::open::open;
use super::options::{Recovery, RocksSettings};
use super::store::RocksStore;
use crate::families::{audit, default, flows};
use crate::records::{AuditRecord, RecoveryMark, StoreIdentity};
use crate::{Batch, Durability, Error, FlowId, Store};

/// What a recovery left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    pub identity: StoreIdentity,
    /// Every flow that has to pass the lineage check.
    pub marked: Vec<FlowId>,
}

impl RocksStore {
    /// Opens up to the damage, marks every flow, records who asked, and closes. `asked` is the audit
    /// record without its hash; its reason becomes the mark's.
    ///
    /// # Errors
    /// `Locked`, `FormatVersion`; `Corruption` when there is no point in time to go back to (a data file
    /// is ahead of the damage, or itself damaged): then a store backup is the way.
    pub fn recover(path: &Path, settings: RocksSettings, asked: &AuditRecord) -> Result<Recovered, Error> {
        let (store, identity) = open(path, settings, Recovery::CutAtDamage, None)?;
        let mark = RecoveryMark { at: asked.at, reason: asked.reason.clone().unwrap_or_default() };
        let marked = flows::ids(&store)?;
        let mut batch = Batch::new();
        for flow in &marked {
            default::put_mark(&mut batch, *flow, &mark);
        }
        audit::append(&store, &mut batch, asked)?;
        store.write(batch, Durability::Synced)?;
        Ok(Recovered { identity, marked })
    }
}
