//! Commit at the source to visible at the target, measured from outside.
//!
//! Each probe commits one payment of its own at the source, then looks at the target until it is there. A probe that
//! never arrives is a finding, not a gap in the figures.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_postgres::Client;

use crate::fleet::Store;
use crate::{session, wait};

const PAUSE: Duration = Duration::from_millis(400);
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LONGEST_LOOK: Duration = Duration::from_millis(10);
/// A row that is not there after this is counted as lost.
const LOST_AFTER: Duration = Duration::from_secs(30);

/// One probe row.
#[derive(Clone, Debug)]
pub struct Sample {
    pub store: String,
    /// Since the probes began.
    pub at: Duration,
    /// None: it did not arrive.
    pub took: Option<Duration>,
}

/// Figures over many samples.
#[derive(Clone, Debug)]
pub struct Latency {
    pub samples: usize,
    pub lost: Vec<String>,
    pub median: Duration,
    pub p99: Duration,
    pub max: Duration,
}

impl Latency {
    /// Over the samples taken after the first `skip`; none if there are none.
    pub fn over(samples: &[Sample], skip: Duration) -> Option<Self> {
        let counted: Vec<&Sample> = samples.iter().filter(|sample| sample.at >= skip).collect();
        let mut took: Vec<Duration> = counted.iter().filter_map(|sample| sample.took).collect();
        took.sort_unstable();
        let mut lost: Vec<String> = counted
            .iter()
            .filter(|sample| sample.took.is_none())
            .map(|sample| sample.store.clone())
            .collect();
        lost.sort();
        lost.dedup();
        let rank = |part: usize| took.get((took.len() * part).div_ceil(100).saturating_sub(1)).copied();
        Some(Self { samples: counted.len(), lost, median: rank(50)?, p99: rank(99)?, max: *took.last()? })
    }
}

/// Probes that run until they are stopped.
#[derive(Debug)]
pub struct Probes {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
    samples: Samples,
    stores: usize,
}

/// What all probes of a run add to.
#[derive(Clone, Debug, Default)]
struct Samples(Arc<Mutex<Vec<Sample>>>);

impl Samples {
    fn add(&self, sample: Sample) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
    }

    fn all(&self) -> Vec<Sample> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Probes {
    pub fn start<'a>(stores: impl Iterator<Item = &'a Store>) -> Self {
        let (stop, stopped) = watch::channel(false);
        let (began, samples) = (Instant::now(), Samples::default());
        let mut tasks = JoinSet::new();
        for store in stores {
            tasks.spawn(probe(store.clone(), began, samples.clone(), stopped.clone()));
        }
        Self { stop, stores: tasks.len(), tasks, samples }
    }

    /// Waits until every store has had this many more probe rows arrive than now.
    ///
    /// # Errors
    /// Not within the time; the message says how many stores have.
    pub async fn progress(&self, rows: usize, within: Duration) -> Result<()> {
        let before = arrivals(&self.samples.all());
        let what = format!("{rows} more probe rows in each of {} stores", self.stores);
        wait::until(&what, within, async || {
            let now = arrivals(&self.samples.all());
            let more = |(store, count): (&String, &usize)| count - before.get(store).unwrap_or(&0) >= rows;
            Ok((now.iter().filter(|arrived| more(*arrived)).count() == self.stores).then_some(()))
        })
        .await
    }

    /// Waits until this many samples were taken after the first `skip`, whether they arrived or not.
    ///
    /// # Errors
    /// Not within the time.
    pub async fn collect(&self, least: usize, skip: Duration, within: Duration) -> Result<()> {
        let what = format!("{least} probes after the first {} s", skip.as_secs());
        wait::until(&what, within, async || {
            let counted = self.samples.all().iter().filter(|sample| sample.at >= skip).count();
            Ok((counted >= least).then_some(()))
        })
        .await
    }

    /// # Errors
    /// A probe panicked.
    pub async fn stop(mut self) -> Result<Vec<Sample>> {
        let _ = self.stop.send(true);
        while let Some(task) = self.tasks.join_next().await {
            task.context("a probe panicked")?;
        }
        Ok(self.samples.all())
    }
}

/// Arrived rows of each store.
fn arrivals(samples: &[Sample]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.took.is_some()) {
        *counts.entry(sample.store.clone()).or_insert(0) += 1;
    }
    counts
}

async fn probe(store: Store, began: Instant, samples: Samples, mut stopped: watch::Receiver<bool>) {
    while !*stopped.borrow() {
        // An error is a server that went away: the sessions are opened again.
        let _ = session_of_probes(&store, began, &samples, &mut stopped).await;
    }
}

/// Probes over one pair of sessions until stopped or cut off.
async fn session_of_probes(
    store: &Store,
    began: Instant,
    samples: &Samples,
    stopped: &mut watch::Receiver<bool>,
) -> Result<()> {
    let source = session::open(&store.source).await?;
    let target = session::open(&store.target).await?;
    let look = target.prepare(&format!("SELECT 1 FROM {}.payments WHERE counter = $1", store.schema)).await?;
    let lowest = "SELECT least(coalesce(min(counter), 0), 0) FROM payments";
    let mut counter: i64 = source.query_one(lowest, &[]).await?.try_get(0)?;
    while !*stopped.borrow() {
        counter -= 1;
        let at = began.elapsed();
        commit(&source, counter).await?;
        let took = visible(&target, &look, counter).await?;
        samples.add(Sample { store: store.id.clone(), at, took });
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            _ = stopped.changed() => {}
        }
    }
    Ok(())
}

async fn commit(source: &Client, counter: i64) -> Result<()> {
    let sql = "INSERT INTO payments (counter, sale_id, method, amount) VALUES ($1, 0, 'probe', 0)";
    source.execute(sql, &[&counter]).await?;
    Ok(())
}

async fn visible(
    target: &Client,
    look: &tokio_postgres::Statement,
    counter: i64,
) -> Result<Option<Duration>> {
    let committed = Instant::now();
    let mut pause = FIRST_LOOK;
    while committed.elapsed() < LOST_AFTER {
        if target.query_opt(look, &[&counter]).await?.is_some() {
            return Ok(Some(committed.elapsed()));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_LOOK);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;

    fn sample(second: u64, millis: Option<u64>) -> Sample {
        Sample {
            store: "store-0001".into(),
            at: Duration::from_secs(second),
            took: millis.map(Duration::from_millis),
        }
    }

    #[test]
    fn figures_are_ranks_of_what_was_counted_and_the_first_seconds_are_left_out() {
        let mut samples: Vec<Sample> = (1..=200).map(|millis| sample(20, Some(millis))).collect();
        samples.push(sample(3, Some(60_000)));
        let latency = Latency::over(&samples, Duration::from_secs(10)).unwrap();
        assert_eq!(latency.samples, 200);
        assert_eq!(latency.median, Duration::from_millis(100));
        assert_eq!(latency.p99, Duration::from_millis(198));
        assert_eq!(latency.max, Duration::from_millis(200));
        assert!(latency.lost.is_empty());
    }

    #[test]
    fn a_probe_that_never_arrived_names_its_store() {
        let latency = Latency::over(&[sample(1, Some(2)), sample(2, None)], Duration::ZERO).unwrap();
        assert_eq!(latency.lost, ["store-0001"]);
    }
}
