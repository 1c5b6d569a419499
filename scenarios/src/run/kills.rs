//! `kill -9` at random moments: who and when come from the run's seed, so that a run can be told again.

use std::time::Duration;

use anyhow::{Context as _, Result};
use rand::RngExt as _;

use super::Scene;
use crate::report::Report;
use crate::spec::{Kills, Victim};

impl Scene {
    pub(super) async fn kill_at_random(&mut self, kills: &Kills, report: &mut Report) -> Result<()> {
        for number in 1..=kills.count {
            let pause = self.random.random_range(kills.shortest_pause_millis..=kills.longest_pause_millis);
            let victim = kills.of[self.random.random_range(0..kills.of.len())];
            tokio::time::sleep(Duration::from_millis(pause)).await;
            let name = self.kill(victim).await.with_context(|| format!("kill {number} of {victim:?}"))?;
            report.say(format!("kill {number} of {}: {name}, {pause} ms after the last return", kills.count));
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
}
