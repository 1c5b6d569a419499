//! The engine binary's command line: `run`, and the tools that `trellara` executes through it.
//!
//! Exit codes are those of the whole product: 0 done, 1 refused or failed, 2 usage, 3 finding; 75 after a
//! write to the store failed, so that a service manager starts the engine again.

mod config;
mod init;
mod preflight;
mod run;
mod store;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::config::{Invalid, Overrides, Settings};

/// How a tool ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done,
    Failed,
    Finding,
    /// Nothing may be assumed about what reached the disk (`EX_TEMPFAIL`).
    TryAgain,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Finding => 3,
            Exit::TryAgain => 75,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    Text,
    Json,
}

#[derive(Debug, Parser)]
#[command(name = "trellara-engine", version, about = "The Trellara replication engine")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Replicate the configured flows until stopped
    Run {
        #[arg(long, default_value = "./trellara.yml")]
        config: PathBuf,
    },
    /// What needs the configuration or the store, without a running engine
    Tool {
        #[command(subcommand)]
        tool: Tool,
    },
}

#[derive(Debug, Subcommand)]
enum Tool {
    Init(init::Arguments),
    Preflight(preflight::Arguments),
    #[command(subcommand)]
    Config(config::Tool),
    #[command(subcommand)]
    Store(store::Tool),
}

/// Where the configuration is and how to answer; every tool takes these.
#[derive(Debug, clap::Args)]
struct Common {
    #[arg(long, default_value = "./trellara.yml")]
    config: PathBuf,
    #[arg(long, default_value = "text")]
    output: Output,
}

impl Common {
    fn load(&self) -> Result<Settings, Invalid> {
        crate::config::load(&self.config, &Overrides::from_environment())
    }
}

/// Parses the arguments and does what they say.
pub fn main() -> ExitCode {
    crate::telemetry::install_log();
    let outcome = match Arguments::parse().command {
        Command::Run { config } => run::run(&config),
        Command::Tool { tool } => match tool {
            Tool::Init(arguments) => init::run(&arguments),
            Tool::Preflight(arguments) => preflight::run(&arguments),
            Tool::Config(tool) => config::run(&tool),
            Tool::Store(tool) => store::run(&tool),
        },
    };
    outcome
        .unwrap_or_else(|error| {
            complain(&format!("error: {error:#}"));
            Exit::Failed
        })
        .into()
}

/// Data for the caller.
#[expect(clippy::print_stdout, reason = "the one place where tools answer")]
fn answer(text: &str) {
    println!("{}", text.trim_end_matches('\n'));
}

/// Everything that is not data.
#[expect(clippy::print_stderr, reason = "the one place where tools complain")]
fn complain(text: &str) {
    eprintln!("{}", text.trim_end_matches('\n'));
}
