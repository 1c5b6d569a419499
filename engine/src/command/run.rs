//! `run`: the engine itself.

use std::path::Path;

use anyhow::Context;

use super::{Exit, complain};
use crate::config::Overrides;
use crate::runtime::{Ended, Engine};

/// Serves until a signal or a stop request, or until the store can no longer be trusted.
pub(super) fn run(config: &Path) -> anyhow::Result<Exit> {
    let settings = match crate::config::load(config, &Overrides::from_environment()) {
        Ok(settings) => settings,
        Err(invalid) => {
            complain(&invalid.to_string());
            return Ok(Exit::Failed);
        }
    };
    let engine = Engine::start(config, settings).context("the engine does not start")?;
    Ok(match engine.serve() {
        Ended::Stopped => Exit::Done,
        Ended::Overdue => Exit::Failed,
        Ended::StoreFailed => Exit::TryAgain,
    })
}
