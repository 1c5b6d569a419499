//! A mapping with what was derived from it once: its statements, and how freely its changes may be ordered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::statement::{Form, Statement, build};
use crate::contract::{Lookup, Mapping, TargetColumn, UniqueIndex};
use crate::settings::TriggerPolicy;

#[derive(Debug)]
pub(super) struct Mapped {
    pub(super) mapping: Mapping,
    /// Nothing fires on the table's changes in our session.
    pub(super) free: bool,
    /// Unique indexes beside the one that rows are found by tie rows together.
    pub(super) tied: bool,
    /// Each source transaction ends with a check of deferred constraints.
    pub(super) boundary: bool,
    /// Deferrable keys that the session does not enforce, so that their values are counted.
    pub(super) recheck: bool,
    statements: Mutex<HashMap<Form, Arc<Statement>>>,
    /// The hot statement of most tables, kept apart so that its form is not built for every row.
    insert: OnceLock<Arc<Statement>>,
}

impl Mapped {
    pub(super) fn new(mapping: Mapping, policy: TriggerPolicy) -> Self {
        let table = &mapping.table;
        let recheck = policy == TriggerPolicy::Skip && !table.deferrable_keys.is_empty();
        let fires = match policy {
            TriggerPolicy::Skip => table.triggers.in_replica,
            TriggerPolicy::Enforce => table.triggers.in_origin,
        };
        let mut mapped = Self {
            free: !fires,
            tied: false,
            boundary: fires || recheck,
            recheck,
            statements: Mutex::default(),
            insert: OnceLock::new(),
            mapping,
        };
        let others = mapped.other_indexes().count();
        mapped.tied = others > 0;
        mapped
    }

    pub(super) fn insert(&self, tolerant: bool) -> Arc<Statement> {
        let form = || Form::Insert { sent: (0..self.mapping.relation.columns.len()).collect(), tolerant };
        if tolerant {
            return self.statement(&form());
        }
        Arc::clone(self.insert.get_or_init(|| self.statement(&form())))
    }

    pub(super) fn statement(&self, form: &Form) -> Arc<Statement> {
        let mut statements = self.statements.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(statement) = statements.get(form) {
            return Arc::clone(statement);
        }
        let statement = Arc::new(build(&self.mapping, form));
        statements.insert(form.clone(), Arc::clone(&statement));
        statement
    }

    /// The target column of a relation column.
    pub(super) fn target(&self, at: usize) -> &TargetColumn {
        &self.mapping.table.columns[self.mapping.columns[at]]
    }

    /// Unique and exclusion indexes that say more than the lookup key does.
    pub(super) fn other_indexes(&self) -> impl Iterator<Item = &UniqueIndex> {
        self.mapping.table.indexes.iter().filter(|index| !self.is_key(index))
    }

    /// Whether the index is one that rows are found by.
    pub(super) fn is_key(&self, index: &UniqueIndex) -> bool {
        let Lookup::Key(keys) = &self.mapping.lookup else { return false };
        let in_key = |number: &i16| keys.iter().any(|at| self.target(*at).number == *number);
        !index.opaque && index.columns.iter().all(in_key)
    }
}
