//! Arguments of `config`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Config {
    /// Report every mistake in the configuration at once (exit 3 when there is one)
    Check,
    /// The configuration with all defaults resolved; secrets are never shown
    Show,
    /// Have the running engine read its configuration again
    Reload(Reload),
}

#[derive(Debug, Args)]
pub struct Reload {
    /// Show the difference, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Detach many flows without asking
    #[arg(long)]
    pub yes: bool,
}
