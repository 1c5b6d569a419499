//! `version`: of this command, and of the engine where one answers.

use serde::Serialize;
use trellara_api::Known;
use trellara_api::engine::Version;

use crate::args::Global;
use crate::exit::{Exit, Failure};
use crate::output::Printer;

#[derive(Serialize)]
struct Versions {
    command: &'static str,
    engine: Known<Version>,
}

pub(crate) async fn run(global: &Global, printer: &Printer) -> Result<Exit, Failure> {
    let engine = match crate::run::client(global) {
        Ok(client) => match client.version().await {
            Ok(version) => Known::Value(version),
            Err(error) => Known::unknown(error.to_string()),
        },
        Err(_) => Known::unknown("no configuration and no --admin"),
    };
    let versions = Versions { command: env!("CARGO_PKG_VERSION"), engine };
    printer.answer(&versions, |out| {
        writeln!(out, "trellara  {}", versions.command)?;
        match &versions.engine {
            Known::Value(engine) => writeln!(
                out,
                "engine    {}  instance {} ({}), process {}, started {}",
                engine.version, engine.instance, engine.instance_id, engine.pid, engine.started
            ),
            Known::Unknown { unknown } => writeln!(out, "engine    unknown: {unknown}"),
        }
    })?;
    Ok(Exit::Done)
}
