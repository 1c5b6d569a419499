//! `kill -9` at random moments: who and when come from the run's seed, so that a run can be told again.
//!
//! Two of the moments are hit on purpose. A target that waits for a standby that does not exist holds every COMMIT
//! open: written there, not answered. A frozen backend keeps an old engine's transaction alive while a new engine
//! connects.

use std::time::Duration;

use anyhow::{Context as _, Result};
use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use rustix::process::Signal;

use super::Scene;
use crate::fleet::ROLE;
use crate::report::Report;
use crate::spec::{Kills, Victim};
use crate::{process, session, wait};

const MOMENT_LIMIT: Duration = Duration::from_secs(60);
/// How long the old transaction is kept while the new engine is there.
const FROZEN: Duration = Duration::from_millis(700);

impl Scene {
    /// Every victim gets its turn before one gets another.
    pub(super) async fn kill_at_random(&mut self, kills: &Kills, report: &mut Report) -> Result<()> {
        let mut turns = Vec::new();
        for number in 1..=kills.count {
            if turns.is_empty() {
                turns.clone_from(&kills.of);
                turns.shuffle(&mut self.random);
            }
            let victim = turns.pop().context("kills without a victim")?;
            let pause = self.random.random_range(kills.shortest_pause_millis..=kills.longest_pause_millis);
            tokio::time::sleep(Duration::from_millis(pause)).await;
            let told = self.kill(victim).await.with_context(|| format!("kill {number}, of {victim:?}"))?;
            report.say(format!("kill {number} of {}, {pause} ms after the last return: {told}", kills.count));
        }
        report.check("every victim came back", true, format!("{} kills, seed {}", kills.count, self.seed));
        Ok(())
    }

    async fn kill(&mut self, victim: Victim) -> Result<String> {
        match victim {
            Victim::Engine => {
                self.engine.kill()?;
                self.engine.start().await?;
                Ok("engine".to_owned())
            }
            Victim::EngineInCommit => self.kill_in_commit().await,
            Victim::EngineWithFrozenBackend => self.kill_with_frozen_backend().await,
            Victim::Source => {
                let chosen = self.random.random_range(0..self.fleet.sources.len());
                let source = &mut self.fleet.sources[chosen];
                source.kill()?;
                source.start().await?;
                Ok(source.name().to_owned())
            }
            Victim::Target => {
                self.fleet.target.kill()?;
                self.fleet.target.start().await?;
                Ok("target".to_owned())
            }
        }
    }

    async fn kill_in_commit(&mut self) -> Result<String> {
        self.wait_for_standby("nobody").await?;
        let held = "SELECT pid FROM pg_stat_activity WHERE usename = $1 AND wait_event = 'SyncRep'";
        let committing = self.engine_backends(held, "an open COMMIT at the target").await?;
        self.engine.kill()?;
        self.wait_for_standby("").await?;
        self.engine.start().await?;
        Ok(format!("engine, with {} open COMMITs at the target", committing.len()))
    }

    async fn kill_with_frozen_backend(&mut self) -> Result<String> {
        let writing = "SELECT pid FROM pg_stat_activity WHERE usename = $1 AND backend_xid IS NOT NULL";
        let backends = self.engine_backends(writing, "an open transaction at the target").await?;
        for backend in &backends {
            // One that has ended meanwhile has nothing to freeze.
            let _ = process::signal(*backend, Signal::STOP);
        }
        self.engine.kill()?;
        let restarted = self.engine.start().await;
        tokio::time::sleep(FROZEN).await;
        for backend in &backends {
            let _ = process::signal(*backend, Signal::CONT);
        }
        restarted?;
        Ok(format!("engine, with {} of its backends at the target frozen past the restart", backends.len()))
    }

    async fn wait_for_standby(&self, name: &str) -> Result<()> {
        let target = session::open(&self.fleet.target_database()).await?;
        target.batch_execute(&format!("ALTER SYSTEM SET synchronous_standby_names = '{name}'")).await?;
        target.batch_execute("SELECT pg_reload_conf()").await?;
        Ok(())
    }

    /// Backends of the engine that are in the wanted state; waits until there is one.
    async fn engine_backends(&self, sql: &str, what: &str) -> Result<Vec<u32>> {
        let target = session::open(&self.fleet.target_database()).await?;
        let look = target.prepare(sql).await?;
        wait::until(what, MOMENT_LIMIT, async || {
            let rows = target.query(&look, &[&ROLE]).await?;
            let backends: Vec<u32> =
                rows.iter().filter_map(|row| row.get::<_, i32>(0).try_into().ok()).collect();
            Ok((!backends.is_empty()).then_some(backends))
        })
        .await
    }
}
