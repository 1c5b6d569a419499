//! Settings of a flow as the configuration would resolve them.

use std::time::Duration;

use trellara_engine::settings::{
    FlowSettings, GroupLimits, RowPolicy, Server, SourceSettings, TableName, TargetSettings, TriggerPolicy,
};
use trellara_storage::FlowName;

/// A flow from `server` to itself; tests change what they are about.
pub(crate) fn flow(server: &Server, tables: &[&str]) -> FlowSettings {
    let table = |name: &&str| TableName { schema: "public".into(), name: (*name).into() };
    FlowSettings {
        name: FlowName::new("store", "sales").unwrap(),
        instance: "test".into(),
        labels: Vec::new(),
        source: SourceSettings {
            server: server.clone(),
            slot: format!("flow_{}", server.database),
            publications: vec!["sales".into()],
            create_publication: true,
            tables: tables.iter().map(table).collect(),
            streaming: true,
            binary: false,
            accept_synchronous: false,
            idle_timeout: Duration::from_secs(20),
            wal_sender_timeout: Duration::from_secs(30),
            heartbeat_interval: Duration::from_secs(60),
            boundary_wait: Duration::from_secs(20),
        },
        target: TargetSettings {
            server: server.clone(),
            schema: None,
            triggers_and_foreign_keys: TriggerPolicy::Skip,
            synchronous_commit: true,
            on_missing_row: RowPolicy::Quarantine,
            on_duplicate: RowPolicy::Quarantine,
            lock_timeout: Duration::from_secs(5),
            lease: Duration::from_secs(30),
            quarantine_unlisted_tables: false,
            pool_max: 4,
        },
        from_now: false,
        group: GroupLimits { transactions: 500, changes: 5_000, bytes: 8 << 20 },
        log_max_bytes: 1 << 30,
        log_retain_applied: Duration::ZERO,
        log_retain_applied_bytes: 0,
        dedup_retain: Duration::from_secs(3600),
        spec_digest: String::new(),
    }
}
