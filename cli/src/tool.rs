//! What the engine's binary does: it stands beside this one and must be of the same version.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, anyhow};

use crate::args::{Format, Global};
use crate::exit::{Exit, Failure};
use crate::settings;

const NAME: &str = "trellara-engine";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Becomes `trellara-engine run`; returns only when that fails.
pub(crate) fn become_engine(global: &Global) -> Failure {
    let engine = match engine().and_then(|engine| Ok((engine, settings::config_path(global)?))) {
        Ok((engine, config)) => Command::new(engine).arg("run").arg("--config").arg(config).exec(),
        Err(failure) => return failure,
    };
    Failure::Local(anyhow!(engine).context("cannot run the engine"))
}

/// Runs `trellara-engine tool ...` and ends as it ends.
pub(crate) fn run(global: &Global, words: &[&str], arguments: &[OsString]) -> Result<Exit, Failure> {
    let format = match global.output {
        Format::Text => "text",
        Format::Json => "json",
    };
    let mut command = Command::new(engine()?);
    command.arg("tool").args(words).args(arguments).args(["--output", format]);
    // `init` writes where the configuration will be, so there need not be one yet.
    match settings::config_path(global) {
        Ok(config) => command.arg("--config").arg(config),
        Err(_) if words == ["init"] => command.arg("--config").arg("./trellara.yml"),
        Err(failure) => return Err(failure),
    };
    let status = command.status().context("cannot run the engine's tools")?;
    match status.code() {
        Some(0) => Ok(Exit::Done),
        Some(2) => Ok(Exit::Usage),
        Some(3) => Ok(Exit::Finding),
        Some(_) => Ok(Exit::Failed),
        None => Err(Failure::Local(anyhow!("{NAME} was ended by a signal"))),
    }
}

fn engine() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().context("cannot tell where this command is")?;
    let engine = own.parent().unwrap_or(Path::new("/")).join(NAME);
    let output = Command::new(&engine)
        .arg("--version")
        .output()
        .with_context(|| format!("cannot run {}, which belongs beside this command", engine.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.split_whitespace().last().unwrap_or("unknown");
    if version != VERSION {
        let text = format!("{} is version {version}, this command is {VERSION}", engine.display());
        return Err(Failure::Local(anyhow!("TRL-0814 versions differ: {text}; install both together")));
    }
    Ok(engine)
}
