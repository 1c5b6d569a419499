//! Oracles as steps: probes in time, contents equal, nothing twice.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::Scene;
use crate::fleet::Store;
use crate::latency::Latency;
use crate::oracle;
use crate::report::Report;
use crate::spec::{CheckProbes, Compare, Progress, seconds};

const SHOWN: usize = 5;

impl Scene {
    pub(super) async fn progress(&self, progress: &Progress, report: &mut Report) -> Result<()> {
        let probes = self.probes.as_ref().context("no probes to look at")?;
        probes.progress(progress.rows, seconds(progress.within_seconds)).await?;
        report.check(
            "the other stores keep moving",
            true,
            format!("{} more probe rows in each", progress.rows),
        );
        Ok(())
    }

    pub(super) async fn check_probes(&mut self, check: &CheckProbes, report: &mut Report) -> Result<()> {
        let probes = self.probes.take().context("no probes to check")?;
        let skip = seconds(check.skip_seconds);
        probes.collect(check.at_least, skip, seconds(check.within_seconds)).await?;
        let samples = probes.stop().await?;
        let latency = Latency::over(&samples, skip).context("no probe row arrived")?;
        report.say(format!(
            "commit at the source to visible at the target, {} probe rows, first {} s left out: \
             p50 {}, p99 {}, max {}",
            latency.samples,
            check.skip_seconds,
            millis(latency.median),
            millis(latency.p99),
            millis(latency.max)
        ));
        report.check("every probe row arrived", latency.lost.is_empty(), list(&latency.lost));
        let limit = Duration::from_millis(check.max_millis);
        report.check(
            &format!("slowest under {} ms", check.max_millis),
            latency.max < limit,
            millis(latency.max),
        );
        Ok(())
    }

    pub(super) async fn compare(&mut self, compare: &Compare, report: &mut Report) -> Result<()> {
        if self.load.is_some() {
            self.stop_load(report).await?;
        }
        let stores: Vec<&Store> =
            self.fleet.stores.iter().filter(|store| !compare.except.contains(&store.id)).collect();
        let mut rows = 0;
        let mut findings = Vec::new();
        for store in &stores {
            oracle::flow_through(store, seconds(compare.within_seconds)).await?;
            let (counted, differences) =
                oracle::contents(store).await.with_context(|| format!("comparing {}", store.id))?;
            rows += counted;
            findings.extend(differences.into_iter().map(|difference| format!("{} {difference}", store.id)));
            let twice = oracle::counted_twice(store).await?;
            report_twice(store, &twice, report);
        }
        for finding in &findings {
            report.say(finding);
        }
        let what = format!("contents equal in {} stores, {rows} rows compared one by one", stores.len());
        report.check(&what, findings.is_empty(), format!("{} differences", findings.len()));
        Ok(())
    }
}

fn report_twice(store: &Store, twice: &[i64], report: &mut Report) {
    if !twice.is_empty() {
        report.check(&format!("nothing took effect twice in {}", store.id), false, list(twice));
    }
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1_000.0)
}

/// A few of them, and how many there are.
pub(super) fn list<T: Debug>(found: &[T]) -> String {
    match found {
        [] => "none".to_owned(),
        some => format!("{} found, first {:?}", some.len(), &some[..some.len().min(SHOWN)]),
    }
}
