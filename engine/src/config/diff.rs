//! Reload as a diff: what changes at once, what is refused while the flow lives, what is detached. Nothing
//! is ever dropped by a reload.

use std::collections::BTreeMap;

use trellara_api::config::{FieldChange, FlowChange, Reload};
use trellara_storage::FlowName;

use super::units::{show_bytes, show_duration};
use super::{Settings, show};
use crate::settings::{FlowSettings, Password, RowPolicy, Server, TriggerPolicy};

/// Detaching more than this many flows at once, or more than 5 %, looks like a mistake.
const MANY: usize = 5;

/// What a reload would do.
#[derive(Clone, Debug)]
pub struct Diff {
    pub added: Vec<FlowSettings>,
    /// Flows with other settings than before, as they are wanted now.
    pub changed: Vec<FlowSettings>,
    pub detached: Vec<FlowName>,
    /// The same for people; `applied` and `dry_run` are still to be set.
    pub report: Reload,
}

/// Compares what runs with what is wanted.
pub fn diff(running: &Settings, wanted: &Settings) -> Diff {
    let before: BTreeMap<&FlowName, &FlowSettings> =
        running.flows.iter().map(|flow| (&flow.name, flow)).collect();
    let after: BTreeMap<&FlowName, &FlowSettings> =
        wanted.flows.iter().map(|flow| (&flow.name, flow)).collect();
    let added: Vec<FlowSettings> = after
        .iter()
        .filter(|(name, _)| !before.contains_key(*name))
        .map(|(_, flow)| (*flow).clone())
        .collect();
    let detached: Vec<FlowName> =
        before.keys().filter(|name| !after.contains_key(*name)).map(|name| (*name).clone()).collect();
    let mut changed = Vec::new();
    let mut changes = Vec::new();
    for (name, new) in &after {
        let Some(old) = before.get(*name) else { continue };
        let fields = fields(old, new);
        if !fields.is_empty() {
            changed.push((*new).clone());
            changes.push(FlowChange { flow: name.to_string(), fields });
        }
    }
    let unchanged = after.len() - added.len() - changed.len();
    let report = Reload {
        dry_run: false,
        applied: false,
        added: added.iter().map(|flow| flow.name.to_string()).collect(),
        changed: changes,
        needs_yes: detached.len() > MANY || detached.len() * 20 > before.len(),
        detached: detached.iter().map(ToString::to_string).collect(),
        unchanged: unchanged as u64,
        needs_restart: engine_fields(running, wanted),
    };
    Diff { added, changed, detached, report }
}

/// The engine's own settings: read once, at start.
fn engine_fields(old: &Settings, new: &Settings) -> Vec<FieldChange> {
    let shown = |settings: &Settings| {
        [
            ("instance", settings.instance.clone()),
            ("data_dir", settings.data_dir.display().to_string()),
            ("admin.socket", settings.admin_socket.display().to_string()),
            ("metrics", format!("{:?}", settings.metrics)),
            ("storage", format!("{:?}", settings.storage)),
        ]
    };
    changes(shown(old), shown(new), None)
}

/// Fields that differ; the refused ones carry the way to get there.
fn fields(old: &FlowSettings, new: &FlowSettings) -> Vec<FieldChange> {
    let refused = format!("trellara flow remove {}, then enrol it again", new.name);
    let mut fields = changes(fixed(old), fixed(new), Some(&refused));
    fields.extend(changes(live(old), live(new), None));
    fields
}

fn changes<const N: usize>(
    old: [(&str, String); N],
    new: [(&str, String); N],
    refused: Option<&str>,
) -> Vec<FieldChange> {
    let pairs = old.into_iter().zip(new).filter(|((_, from), (_, to))| from != to);
    let change = |((field, from), (_, to)): ((&str, String), (&str, String))| FieldChange {
        field: field.to_owned(),
        from,
        to,
        refused: refused.map(str::to_owned),
    };
    pairs.map(change).collect()
}

/// What positions and content depend on.
fn fixed(flow: &FlowSettings) -> [(&'static str, String); 6] {
    let mut tables: Vec<String> =
        flow.source.tables.iter().map(|table| format!("{}.{}", table.schema, table.name)).collect();
    tables.sort();
    [
        ("source.slot", flow.source.slot.clone()),
        ("source.publications", flow.source.publications.join(", ")),
        ("source database", flow.source.server.database.clone()),
        ("dataset.tables", tables.join(", ")),
        ("target database", flow.target.server.database.clone()),
        ("target.schema", flow.target.schema.clone().unwrap_or_default()),
    ]
}

fn live(flow: &FlowSettings) -> [(&'static str, String); 23] {
    let (source, target) = (&flow.source, &flow.target);
    let policy = |policy| match policy {
        RowPolicy::Quarantine => "quarantine".to_owned(),
        RowPolicy::Record => "record".to_owned(),
    };
    let triggers = match target.triggers_and_foreign_keys {
        TriggerPolicy::Skip => "skip",
        TriggerPolicy::Enforce => "enforce",
    };
    let labels: Vec<String> = flow.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    [
        ("source server", server(&source.server)),
        ("target server", server(&target.server)),
        ("labels", labels.join(", ")),
        ("start", if flow.from_now { "from_now" } else { "" }.to_owned()),
        ("source.streaming", source.streaming.to_string()),
        ("source.binary", source.binary.to_string()),
        ("source.accept_synchronous", source.accept_synchronous.to_string()),
        ("source.idle_timeout", show_duration(source.idle_timeout)),
        ("source.wal_sender_timeout", show_duration(source.wal_sender_timeout)),
        ("source.boundary_wait", show_duration(source.boundary_wait)),
        ("heartbeat.interval", show_duration(source.heartbeat_interval)),
        ("target.triggers_and_foreign_keys", triggers.to_owned()),
        ("target.synchronous_commit", target.synchronous_commit.to_string()),
        ("target.lock_timeout", show_duration(target.lock_timeout)),
        ("dataset.unlisted_tables quarantined", target.quarantine_unlisted_tables.to_string()),
        ("pool.max", target.pool_max.to_string()),
        ("on_missing_row", policy(target.on_missing_row)),
        ("on_duplicate", policy(target.on_duplicate)),
        ("apply", show::group(&flow.group)),
        ("log.max_bytes", show_bytes(flow.log_max_bytes)),
        ("log.retain_applied", show_duration(flow.log_retain_applied)),
        ("log.retain_applied_bytes", show_bytes(flow.log_retain_applied_bytes)),
        ("dedup.retain", show_duration(flow.dedup_retain)),
    ]
}

/// Host, role, certificates and where the password comes from: may change while the lineage stays.
fn server(server: &Server) -> String {
    let password = match &server.password {
        Password::None => "none".to_owned(),
        Password::Literal(_) => "redacted".to_owned(),
        Password::Env(name) => format!("env {name}"),
        Password::File(path) => format!("file {}", path.display()),
        Password::Passfile(path) => format!("passfile {}", path.display()),
    };
    let file = |file: &Option<std::path::PathBuf>| {
        file.as_ref().map_or_else(|| "-".to_owned(), |file| file.display().to_string())
    };
    format!(
        "{}@{}:{} tls {} ({}, {}, {}) password {password} timeout {}",
        server.user,
        server.host,
        server.port,
        show::tls(server.tls.mode),
        file(&server.tls.ca_file),
        file(&server.tls.certificate_file),
        file(&server.tls.key_file),
        show_duration(server.connect_timeout)
    )
}
