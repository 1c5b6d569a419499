//! Faults as steps: SQL at either side, connections cut, a full disk.
//!
//! Every fault is brought about from outside, with PostgreSQL's and the system's own means. What a scenario does to a
//! database stands in its file, as SQL.

use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tokio_postgres::Config;

use super::Scene;
use crate::cluster::Stop;
use crate::report::Report;
use crate::spec::{AtSource, RestartSource, SourceShows, TargetShows, seconds};
use crate::{session, wait};

const BETWEEN_CUTS: Duration = Duration::from_millis(300);
const BALLAST: &str = "ballast";
static BALLAST_BLOCK: [u8; 64 << 10] = [1; 64 << 10];

impl Scene {
    pub(super) async fn at_source(&self, step: &AtSource) -> Result<()> {
        session::script(&self.fleet.named(&step.store)?.source, &step.sql).await
    }

    pub(super) async fn at_target(&self, sql: &str) -> Result<()> {
        session::script(&self.fleet.target_database(), sql).await
    }

    pub(super) async fn source_shows(&self, step: &SourceShows, report: &mut Report) -> Result<()> {
        let source = &self.fleet.named(&step.store)?.source;
        shows_true(source, &step.sql, seconds(step.within_seconds)).await?;
        report.check(&step.store, true, step.sql.trim());
        Ok(())
    }

    pub(super) async fn target_shows(&self, step: &TargetShows, report: &mut Report) -> Result<()> {
        shows_true(&self.fleet.target_database(), &step.sql, seconds(step.within_seconds)).await?;
        report.check("target", true, step.sql.trim());
        Ok(())
    }

    pub(super) async fn restart_source(&mut self, step: &RestartSource, report: &mut Report) -> Result<()> {
        let source = self.fleet.source_of(&step.store)?;
        let began = Instant::now();
        source.stop(Stop::Fast).await?;
        let took = began.elapsed();
        source.start().await?;
        let limit = seconds(step.within_seconds);
        let what = format!("{} stops fast within {} s", source.name(), step.within_seconds);
        report.check(&what, took < limit, format!("{:.1} s", took.as_secs_f64()));
        Ok(())
    }

    pub(super) async fn stop_target(&mut self) -> Result<()> {
        self.fleet.target.stop(Stop::Fast).await
    }

    pub(super) async fn start_target(&mut self) -> Result<()> {
        self.fleet.target.start().await
    }

    pub(super) fn keep_cutting(&mut self, store: &str) -> Result<()> {
        let store = self.fleet.named(store)?.clone();
        self.cutting.spawn(async move {
            let cut = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots
                       WHERE database = current_database() AND active";
            loop {
                // A cut that fails is tried again with the next one.
                let _ = session::script(&store.source, cut).await;
                tokio::time::sleep(BETWEEN_CUTS).await;
            }
        });
        Ok(())
    }

    /// Takes every free block of the target's small disk.
    pub(super) fn fill_disk(&self) -> Result<()> {
        let disk = self.fleet.disk().context("this fleet's target has no disk of its own")?;
        let mut ballast = std::fs::File::create(disk.join(BALLAST))?;
        loop {
            match ballast.write(&BALLAST_BLOCK) {
                Ok(written) => ensure!(written > 0, "the disk takes nothing and is not full"),
                Err(error) if error.kind() == std::io::ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(error).context("filling the disk"),
            }
        }
    }

    pub(super) fn free_disk(&self) -> Result<()> {
        let disk = self.fleet.disk().context("this fleet's target has no disk of its own")?;
        std::fs::remove_file(disk.join(BALLAST)).context("freeing the disk")
    }
}

/// Waits until a query's first value is true.
async fn shows_true(database: &Config, sql: &str, within: Duration) -> Result<()> {
    wait::until(sql, within, async || {
        let row = session::open(database).await?.query_opt(sql, &[]).await?;
        let shown: Option<bool> = row.map(|row| row.try_get(0)).transpose()?.flatten();
        Ok((shown == Some(true)).then_some(()))
    })
    .await
}
