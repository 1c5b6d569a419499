//! The grammar of the command line. One file per command group; what they do is in `commands`.

pub mod config;
pub mod flow;
pub mod quarantine;
pub mod select;
pub mod status;
pub mod store;
mod values;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use values::duration;

/// Replicates committed PostgreSQL transactions for a whole fleet.
#[derive(Debug, Parser)]
#[command(name = "trellara", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Understood by every command.
#[derive(Clone, Debug, Args)]
pub struct Global {
    /// Configuration file [default: ./trellara.yml, else /etc/trellara/trellara.yml]
    #[arg(long, global = true, env = "TRELLARA_CONFIG", value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// Admin socket of the engine [default: what the configuration says]
    #[arg(long, global = true, value_name = "SOCKET")]
    pub admin: Option<PathBuf>,
    /// Form of the answer
    #[arg(short, long, visible_alias = "format", global = true, value_enum, default_value_t = Format::Text)]
    pub output: Format,
    /// Longest wait for an answer
    #[arg(long, global = true, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub timeout: Duration,
    /// Who acts, for the audit trail beside your user name
    #[arg(long = "as", global = true, value_name = "NAME")]
    pub acting_as: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a configuration file to start from
    Init(Init),
    /// Run the engine in the foreground
    Run,
    /// Stop the engine in an orderly way
    Stop,
    /// Try servers, permissions and tables of the configured flows, changing nothing
    Preflight(Preflight),
    /// The fleet on one screen
    Status(status::Status),
    /// Flows: list, show, pause, resume, restart, remove
    #[command(subcommand)]
    Flow(flow::Flow),
    /// Transactions that were set aside, and their ways out
    #[command(subcommand)]
    Quarantine(quarantine::Quarantine),
    /// Repair plans
    #[command(subcommand)]
    Repair(Repair),
    /// Same as `repair plan`
    RepairPlan(Plan),
    /// The local stream of transactions
    #[command(subcommand)]
    Stream(Stream),
    /// The configuration: check, show, reload
    #[command(subcommand)]
    Config(config::Config),
    /// The engine's store: inspect, back up, recover
    #[command(subcommand)]
    Store(store::Store),
    /// Versions of this command and of the running engine
    Version,
    /// Completions for a shell
    Completions(Completions),
}

#[derive(Debug, Args)]
pub struct Init {
    /// Name of this engine, in `application_name` and wherever it is shown
    #[arg(long, default_value = "trellara", value_name = "NAME")]
    pub instance: String,
}

#[derive(Debug, Args)]
pub struct Preflight {
    #[command(flatten)]
    pub select: select::Select,
}

#[derive(Debug, Subcommand)]
pub enum Repair {
    /// What is blocked, and exactly how to unblock it; changes nothing
    Plan(Plan),
}

#[derive(Debug, Args)]
pub struct Plan {
    #[command(flatten)]
    pub select: select::Select,
    #[command(flatten)]
    pub gate: select::ExitCodeFlag,
}

#[derive(Debug, Subcommand)]
pub enum Stream {
    /// Where a commit LSN stands: in the local log or not, applied or not (exit 3 when not received)
    LocateLocal(Locate),
}

#[derive(Debug, Args)]
pub struct Locate {
    #[command(flatten)]
    pub flow: select::OneFlow,
    /// Commit LSN, as PostgreSQL writes it: 0/16B3748
    #[arg(long, value_name = "LSN")]
    pub lsn: String,
}

#[derive(Debug, Args)]
pub struct Completions {
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}
