//! The engine: `run` serves a fleet, `tool` does what needs the configuration or the store without it.

use std::process::ExitCode;

fn main() -> ExitCode {
    trellara_engine::command::main()
}
