//! The relations of one flow: versions as the store keeps them, checked against the target's catalog.
//!
//! A mapping is kept until something fails at a change; every change-by-change attempt reads the catalog
//! anew, so that what a person repaired is seen.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_postgres::Client;
use tracing::warn;
use trellara_actors::failure::Code;
use trellara_actors::ports::FlowLog;
use trellara_storage::families::relations;
use trellara_storage::records::RelationRecord;
use trellara_storage::{FlowId, FlowName, Incarnation, RelationId, RelationVersion};

use super::flight::within;
use super::mapped::Mapped;
use super::stop::Cause;
use crate::contract::{Breach, catalog, check};
use crate::settings::{FlowSettings, TableName, TriggerPolicy};

/// What the changes of a relation version are to be done with.
#[derive(Clone, Debug)]
pub(super) enum Resolved {
    Mapped(Arc<Mapped>),
    /// Published, but not of the dataset.
    LeftOut,
}

/// Names one relation version of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct VersionKey {
    pub(super) flow: FlowId,
    pub(super) incarnation: Incarnation,
    pub(super) relation: RelationId,
    pub(super) version: RelationVersion,
}

#[derive(Debug)]
pub(super) struct Relations<L> {
    log: L,
    flow: FlowName,
    /// Empty means every published table.
    tables: Vec<TableName>,
    refuse_unlisted: bool,
    schema: Option<String>,
    policy: TriggerPolicy,
    records: Mutex<HashMap<VersionKey, Arc<RelationRecord>>>,
    resolved: Mutex<HashMap<VersionKey, Resolved>>,
}

impl<L: FlowLog> Relations<L> {
    pub(super) fn new(settings: &FlowSettings, log: L) -> Self {
        Self {
            log,
            flow: settings.name.clone(),
            tables: settings.source.tables.clone(),
            refuse_unlisted: settings.target.quarantine_unlisted_tables,
            schema: settings.target.schema.clone(),
            policy: settings.target.triggers_and_foreign_keys,
            records: Mutex::default(),
            resolved: Mutex::default(),
        }
    }

    pub(super) fn log(&self) -> &L {
        &self.log
    }

    pub(super) fn known(&self, key: VersionKey) -> Option<Resolved> {
        self.resolved.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }

    /// The next use of each relation reads the target's catalog again.
    pub(super) fn forget(&self) {
        self.resolved.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Checks the version against the target as it is now.
    pub(super) async fn resolve(&self, client: &Client, key: VersionKey) -> Result<Resolved, Cause> {
        let record = self.record(key).await?;
        let resolved = if self.is_listed(&record) {
            let name = TableName {
                schema: self.schema.clone().unwrap_or_else(|| namespace(&record).to_owned()),
                name: record.name.clone(),
            };
            let object = within(catalog::read(client, &name)).await?;
            let mapping = check(&record, &name, object).map_err(|breach| Cause::Breach(Box::new(breach)))?;
            Resolved::Mapped(Arc::new(Mapped::new(mapping, self.policy)))
        } else {
            self.leave_out(&record)?
        };
        self.resolved.lock().unwrap_or_else(PoisonError::into_inner).insert(key, resolved.clone());
        Ok(resolved)
    }

    fn leave_out(&self, record: &RelationRecord) -> Result<Resolved, Cause> {
        if self.refuse_unlisted {
            return Err(Cause::Breach(Box::new(Breach {
                code: Code::ContractBroken,
                what: "published table is not in the dataset".to_owned(),
                table: Box::new(TableName {
                    schema: namespace(record).to_owned(),
                    name: record.name.clone(),
                }),
                column: None,
                ddl: Vec::new(),
                target_relation: None,
            })));
        }
        warn!(
            flow = %self.flow, schema = namespace(record), table = record.name,
            "published table is not in the dataset, its changes are left out"
        );
        Ok(Resolved::LeftOut)
    }

    fn is_listed(&self, record: &RelationRecord) -> bool {
        let schema = namespace(record);
        self.tables.is_empty()
            || self.tables.iter().any(|table| table.schema == schema && table.name == record.name)
    }

    /// Versions never change once they are written.
    async fn record(&self, key: VersionKey) -> Result<Arc<RelationRecord>, Cause> {
        if let Some(record) = self.records.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Arc::clone(record));
        }
        let read = self
            .log
            .read(move |store| relations::get(store, key.flow, key.incarnation, key.relation, key.version));
        let record = read.await.map_err(Cause::Store)?.ok_or(Cause::RelationMissing)?;
        let record = Arc::new(record);
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.insert(key, Arc::clone(&record));
        Ok(record)
    }
}

/// pgoutput sends an empty namespace for `pg_catalog`.
fn namespace(record: &RelationRecord) -> &str {
    if record.namespace.is_empty() { "pg_catalog" } else { &record.namespace }
}
