//! Load on the stores: seeded, with everything that a till does, and able to outlive the servers that it talks to.
//!
//! The danger is load that an oracle cannot judge. Payments carry a counter that is unique per store, in a table
//! without a key: a transaction that took effect twice at the target shows there as a counter seen twice.

mod till;

use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_postgres::Client;

use crate::fleet::Store;
use crate::session;
use till::Till;

const STATEMENT_LIMIT: Duration = Duration::from_secs(30);
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);

/// Load that runs until it is stopped.
#[derive(Debug)]
pub struct Workload {
    stop: watch::Sender<bool>,
    tills: JoinSet<u64>,
}

impl Workload {
    /// One till per store, each with a seed of its own derived from `seed`.
    pub fn start(stores: &[Store], seed: u64, transactions_per_second: f64) -> Self {
        let (stop, stopped) = watch::channel(false);
        let pace = Duration::from_secs_f64(1.0 / transactions_per_second.max(0.01));
        let mut tills = JoinSet::new();
        for (seed, store) in (seed..).zip(stores) {
            tills.spawn(serve(store.clone(), seed, pace, stopped.clone()));
        }
        Self { stop, tills }
    }

    /// Ends every till after the transaction in its hands.
    ///
    /// # Errors
    /// A till panicked.
    pub async fn stop(mut self) -> Result<u64> {
        let _ = self.stop.send(true);
        let mut committed = 0;
        while let Some(till) = self.tills.join_next().await {
            committed += till.context("a till panicked")?;
        }
        Ok(committed)
    }
}

/// Returns the number of transactions that the source confirmed.
async fn serve(store: Store, seed: u64, pace: Duration, mut stopped: watch::Receiver<bool>) -> u64 {
    let mut till = Till::new(seed);
    let mut committed = 0;
    let mut beat = tokio::time::interval(pace);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while !*stopped.borrow() {
        let Ok(client) = open(&store, &mut till).await else {
            pause(&mut stopped, RECONNECT_PAUSE).await;
            continue;
        };
        while !*stopped.borrow() {
            let transaction = till.next();
            if execute(&client, &transaction).await.is_err() {
                break;
            }
            committed += 1;
            tokio::select! {
                _ = beat.tick() => {}
                _ = stopped.changed() => {}
            }
        }
    }
    committed
}

/// After a lost connection nobody knows whether the last COMMIT arrived: the till goes on from what is there.
async fn open(store: &Store, till: &mut Till) -> Result<Client> {
    let client = session::open(&store.source).await?;
    let marks =
        "SELECT coalesce((SELECT max(id) FROM sales), 0), coalesce((SELECT max(counter) FROM payments), 0)";
    let row = client.query_one(marks, &[]).await?;
    let open_sales = "SELECT id FROM (SELECT id FROM sales ORDER BY id DESC LIMIT 200) newest ORDER BY id";
    let sales = client.query(open_sales, &[]).await?;
    till.resume(row.try_get(0)?, row.try_get(1)?, sales.iter().map(|row| row.get(0)));
    Ok(client)
}

async fn execute(client: &Client, transaction: &str) -> Result<()> {
    tokio::time::timeout(STATEMENT_LIMIT, client.batch_execute(transaction)).await??;
    Ok(())
}

async fn pause(stopped: &mut watch::Receiver<bool>, length: Duration) {
    tokio::select! {
        () = tokio::time::sleep(length) => {}
        _ = stopped.changed() => {}
    }
}
