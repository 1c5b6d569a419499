//! Reload of the configuration as a diff.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReloadRequest {
    pub dry_run: bool,
    /// Detach many flows without asking.
    pub yes: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldChange {
    pub field: String,
    pub from: String,
    pub to: String,
    /// Why it is refused while the flow lives, and the command that does it; none for a live change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowChange {
    pub flow: String,
    pub fields: Vec<FieldChange>,
}

/// The diff, and whether it was carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reload {
    pub dry_run: bool,
    pub applied: bool,
    pub added: Vec<String>,
    pub changed: Vec<FlowChange>,
    /// Left the configuration: stopped, their slots watched, nothing dropped.
    pub detached: Vec<String>,
    pub unchanged: u64,
    /// Settings of the engine itself that take a restart.
    #[serde(default)]
    pub needs_restart: Vec<FieldChange>,
    /// Detaches more than five flows or 5 % of them: wants `--yes`.
    pub needs_yes: bool,
}

impl Reload {
    pub fn is_refused(&self) -> bool {
        self.changed.iter().flat_map(|change| &change.fields).any(|field| field.refused.is_some())
    }

    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.changed.is_empty()
            && self.detached.is_empty()
            && self.needs_restart.is_empty()
    }
}
