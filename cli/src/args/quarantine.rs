//! Arguments of `quarantine`.

use clap::{Args, Subcommand};

use super::select::{ExitCodeFlag, Select};

#[derive(Debug, Subcommand)]
pub enum Quarantine {
    /// Open records, newest first
    List(List),
    /// The whole evidence of one transaction
    Show(Show),
    /// Apply a transaction again, by the ordinary path
    Replay(Replay),
    /// Pass a transaction over for good; its tables count as diverged
    Discard(Discard),
}

#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    pub select: Select,
    /// Resolved records too
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub gate: ExitCodeFlag,
}

#[derive(Debug, Args)]
pub struct Show {
    /// Id of the record, or a unique prefix: Q-7F3K
    #[arg(value_name = "ID")]
    pub id: String,
    #[command(flatten)]
    pub gate: ExitCodeFlag,
}

#[derive(Debug, Args)]
pub struct Replay {
    /// Id of the record, or a unique prefix: Q-7F3K
    #[arg(value_name = "ID")]
    pub id: String,
    /// Try it and roll back: would it apply now? (exit 3 when not)
    #[arg(long)]
    pub check: bool,
}

#[derive(Debug, Args)]
pub struct Discard {
    /// Id of the record, or a unique prefix: Q-7F3K
    #[arg(value_name = "ID")]
    pub id: String,
    /// Kept with the record
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// First digits of the transaction digest, as `quarantine show` prints it
    #[arg(long, value_name = "DIGITS")]
    pub digest: String,
}
