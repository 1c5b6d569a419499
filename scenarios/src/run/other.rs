//! More than one engine with the same flows: which of them the steps are about.
//!
//! Each has its own folder, store and admin socket, and is named in its configuration as the scenario names it, so
//! that who holds a flow can be read in what the other one shows.

use std::collections::BTreeMap;

use anyhow::Result;

use super::Scene;
use crate::cli::Cli;
use crate::engine::Engine;
use crate::report::Report;

/// The engine that every scenario begins with.
pub(super) const FIRST: &str = "engine";

/// Engines beside the one that the steps are about.
#[derive(Debug, Default)]
pub(super) struct Others(BTreeMap<String, (Engine, Cli)>);

impl Scene {
    pub(super) fn use_engine(&mut self, name: &str) -> Result<()> {
        if self.engine.name() == name {
            return Ok(());
        }
        let (engine, cli) = match self.others.0.remove(name) {
            Some(known) => known,
            None => {
                let engine = Engine::configure(&self.sandbox, name, &self.fleet.configuration())?;
                let cli = Cli::new(engine.configuration(), engine.folder())?;
                (engine, cli)
            }
        };
        let before = std::mem::replace(&mut self.engine, engine);
        let before_cli = std::mem::replace(&mut self.cli, cli);
        self.others.0.insert(before.name().to_owned(), (before, before_cli));
        Ok(())
    }
}

impl Others {
    pub(super) fn processes(&self) -> Vec<u32> {
        self.0.values().flat_map(|(engine, _)| engine.processes()).collect()
    }

    pub(super) fn logs(&self) -> String {
        self.0.values().map(|(engine, _)| engine.log()).collect()
    }

    /// Those that run.
    pub(super) async fn stop(&mut self, report: &mut Report) {
        for (name, (engine, _)) in &mut self.0 {
            if !engine.processes().is_empty() {
                report.outcome(&format!("{name} stops when asked to"), engine.stop().await);
            }
        }
    }
}
