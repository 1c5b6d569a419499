//! `trellara`: see the library beside this file.

use std::process::ExitCode;

use clap::Parser;
use trellara_cli::args::Cli;

fn main() -> ExitCode {
    trellara_cli::run(Cli::parse()).into()
}
