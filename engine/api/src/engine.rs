//! The engine itself: version, health, stop.

use serde::{Deserialize, Serialize};

use crate::Time;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Of the engine binary.
    pub version: String,
    /// Configured instance name.
    pub instance: String,
    /// The id kept in `data_dir`, hexadecimal.
    pub instance_id: String,
    pub started: Time,
    pub pid: u32,
}

/// `ready` means that flows make progress, not that the process is up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    pub ok: bool,
    pub text: String,
}

/// The answer to a stop request: shutdown has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopping {
    pub pid: u32,
}
