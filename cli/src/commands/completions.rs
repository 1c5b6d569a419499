//! `completions`: the grammar, as a script for a shell.

use clap::CommandFactory;

use crate::args::{Cli, Completions};
use crate::exit::{Exit, Failure};

pub(crate) fn run(args: &Completions) -> Result<Exit, Failure> {
    clap_complete::generate(args.shell, &mut Cli::command(), "trellara", &mut std::io::stdout());
    Ok(Exit::Done)
}
