//! Store backup.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupRequest {
    /// Absolute, on the engine's machine; must not exist yet.
    pub directory: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    pub directory: String,
    pub bytes: u64,
}
