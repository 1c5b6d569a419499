//! Faults as steps: poison in a store's stream, rights taken away, connections cut, floods.
//!
//! Every fault is brought about from outside, with PostgreSQL's own means.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::Scene;
use crate::fleet::{ROLE, Store};
use crate::session;
use crate::spec::{Flood, Poison, PoisonKind};
use crate::workload::PLANTED_IDS;

const BETWEEN_CUTS: Duration = Duration::from_millis(300);

impl Scene {
    pub(super) async fn poison(&self, poison: &Poison) -> Result<()> {
        let store = self.fleet.named(&poison.store)?;
        match poison.kind {
            PoisonKind::ConstraintViolation => violate_constraint(store).await,
            PoisonKind::SchemaBreach => breach_schema(store).await,
        }
    }

    pub(super) async fn revoke(&self, store: &str) -> Result<()> {
        let store = self.fleet.named(store)?;
        let maintenance = self.fleet.sources[store.cluster].database("postgres");
        let database = &store.database;
        session::script(
            &maintenance,
            &format!(
                "REVOKE CONNECT ON DATABASE {database} FROM PUBLIC, {ROLE};
                 SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = '{database}' AND usename = '{ROLE}'"
            ),
        )
        .await
    }

    pub(super) async fn restore(&self, store: &str) -> Result<()> {
        let store = self.fleet.named(store)?;
        let maintenance = self.fleet.sources[store.cluster].database("postgres");
        session::script(
            &maintenance,
            &format!("GRANT CONNECT ON DATABASE {} TO PUBLIC, {ROLE}", store.database),
        )
        .await
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

    pub(super) async fn flood(&self, flood: &Flood) -> Result<()> {
        let store = self.fleet.named(&flood.store)?;
        let client = session::open(&store.source).await?;
        for number in 0..flood.transactions {
            let first = PLANTED_IDS + 1_000_000 + i64::from(number) * i64::from(flood.rows);
            let sql = format!(
                "INSERT INTO sales (id, customer, status, total, note, sold_at)
                 SELECT {first} + n, 'flood', 'open', n, repeat(md5(n::text), 12), now()
                 FROM generate_series(0, {} - 1) n",
                flood.rows
            );
            client.batch_execute(&sql).await.context("flooding")?;
        }
        Ok(())
    }
}

/// Somebody imported a sale at the target by hand; then the store sells under the same number.
async fn violate_constraint(store: &Store) -> Result<()> {
    let sale = |table: &str, customer: &str| {
        format!(
            "INSERT INTO {table} (id, customer, status, total, sold_at)
             VALUES ({PLANTED_IDS}, '{customer}', 'paid', 12.50, '2026-01-02 03:04:05+00')"
        )
    };
    session::script(&store.target, &sale(&format!("{}.sales", store.schema), "imported by hand")).await?;
    session::script(&store.source, &sale("sales", "customer 17")).await
}

/// A new version of the store's software adds a column before the target has it.
async fn breach_schema(store: &Store) -> Result<()> {
    let sql = format!(
        "ALTER TABLE sales ADD COLUMN loyalty_tier text;
         INSERT INTO sales (id, customer, status, total, sold_at, loyalty_tier)
         VALUES ({PLANTED_IDS}, 'customer 23', 'paid', 8.00, now(), 'gold')"
    );
    session::script(&store.source, &sql).await
}
