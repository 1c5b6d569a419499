//! `trellara-scenario FILE`: runs one scenario against the shipped binaries and ends with `N passed, N failed`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use trellara_scenarios::run;
use trellara_scenarios::spec::Spec;

/// Runs a scenario: real PostgreSQL clusters, the shipped binaries, faults and oracles.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// The scenario file.
    file: PathBuf,
    /// Replays a run: the seed that it printed.
    #[arg(long)]
    seed: Option<u64>,
    /// Number of kills in the place of the file's.
    #[arg(long)]
    kills: Option<u32>,
}

fn main() -> Result<ExitCode> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing::Level::WARN).init();
    let arguments = Arguments::parse();
    let mut spec = Spec::read(&arguments.file)?;
    spec.seed = arguments.seed.or(spec.seed);
    if let Some(kills) = arguments.kills {
        spec = spec.with_kills(kills);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    // Servers die with the thread that started them: this one, which waits here until everything has ended.
    let passed = runtime.block_on(run::scenario(spec));
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
