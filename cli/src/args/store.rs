//! Arguments of `store`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Store {
    /// Look into the store of an engine that is not running
    Inspect(Inspect),
    /// Back the store up while the engine runs
    Backup(Backup),
    /// Open a damaged store at the last point that can be trusted; every flow's lineage is checked again
    Recover(Recover),
}

#[derive(Debug, Args)]
pub struct Inspect {
    /// One flow only
    #[arg(long, value_name = "FLOW")]
    pub flow: Option<String>,
}

#[derive(Debug, Args)]
pub struct Backup {
    /// Folder to make on the engine's machine
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

#[derive(Debug, Args)]
pub struct Recover {
    /// Kept in the audit trail
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}
