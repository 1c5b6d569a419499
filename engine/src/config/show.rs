//! What a configuration came to: one line for `config check`, everything for `config show`. Secrets never
//! appear, only where they come from.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use trellara_actors::apply::GroupLimits;

use super::units::{show_bytes, show_duration};
use super::{LogBudget, Settings};
use crate::settings::{FlowSettings, Password, RowPolicy, Server, TlsMode, TriggerPolicy};

/// The one line of a check that found nothing.
pub fn checked(settings: &Settings) -> String {
    let servers = |side: fn(&FlowSettings) -> &Server| {
        let servers = settings.flows.iter().map(side).map(|server| (&server.host, server.port));
        servers.collect::<BTreeSet<_>>().len()
    };
    format!(
        "configuration is valid: {} flows, {} source servers, {} target servers",
        settings.flows.len(),
        servers(|flow| &flow.source.server),
        servers(|flow| &flow.target.server)
    )
}

/// The whole configuration as YAML, defaults resolved.
pub fn show(settings: &Settings) -> String {
    let mut text = String::new();
    write_settings(&mut text, settings).expect("writing to a String");
    text
}

fn write_settings(out: &mut String, settings: &Settings) -> fmt::Result {
    writeln!(out, "config_version: 1")?;
    writeln!(out, "instance: {}", quoted(&settings.instance))?;
    writeln!(out, "data_dir: {}", quoted(&settings.data_dir.display().to_string()))?;
    writeln!(out, "admin: {{ socket: {} }}", quoted(&settings.admin_socket.display().to_string()))?;
    let per_flow = if settings.metrics.per_flow { "core" } else { "off" };
    match settings.metrics.listen {
        Some(listen) => writeln!(out, "metrics: {{ listen: \"{listen}\", per_flow: {per_flow} }}")?,
        None => writeln!(out, "metrics: {{ per_flow: {per_flow} }}")?,
    }
    writeln!(out, "storage: {{ memory: {} }}", show_bytes(settings.storage.memory))?;
    let total = match settings.storage.log_total {
        LogBudget::Bytes(bytes) => show_bytes(bytes),
        LogBudget::Percent(percent) => format!("{percent}%"),
    };
    match settings.storage.log_reserve_bytes {
        Some(reserve) => {
            writeln!(out, "log: {{ total_bytes: {total}, reserve_bytes: {} }}", show_bytes(reserve))?;
        }
        None => writeln!(out, "log: {{ total_bytes: {total} }}")?,
    }
    if let Some(flow) = settings.flows.first() {
        writeln!(out, "pool: {{ max: {} }}", flow.target.pool_max)?;
    }
    writeln!(out, "flows:")?;
    settings.flows.iter().try_for_each(|flow| write_flow(out, flow))
}

fn write_flow(out: &mut String, flow: &FlowSettings) -> fmt::Result {
    let source = &flow.source;
    let target = &flow.target;
    writeln!(out, "  - source:")?;
    writeln!(out, "      id: {}", quoted(flow.name.source()))?;
    write_server(out, &source.server)?;
    writeln!(out, "      slot: {}", source.slot)?;
    if !source.create_publication {
        writeln!(out, "      publications: [{}]", list(&source.publications))?;
    }
    writeln!(out, "      streaming: {}", on_off(source.streaming))?;
    writeln!(out, "      binary: {}", on_off(source.binary))?;
    writeln!(out, "      accept_synchronous: {}", on_off(source.accept_synchronous))?;
    writeln!(out, "      idle_timeout: {}", show_duration(source.idle_timeout))?;
    writeln!(out, "      wal_sender_timeout: {}", show_duration(source.wal_sender_timeout))?;
    writeln!(out, "      boundary_wait: {}", show_duration(source.boundary_wait))?;
    writeln!(out, "    dataset:")?;
    writeln!(out, "      id: {}", quoted(flow.name.dataset()))?;
    let tables: Vec<String> = source.tables.iter().map(table).collect();
    writeln!(out, "      tables: [{}]", list(&tables))?;
    let unlisted = if target.quarantine_unlisted_tables { "quarantine" } else { "ignore" };
    writeln!(out, "      unlisted_tables: {unlisted}")?;
    writeln!(out, "    target:")?;
    write_server(out, &target.server)?;
    if let Some(schema) = &target.schema {
        writeln!(out, "      schema: {}", quoted(schema))?;
    }
    let triggers = match target.triggers_and_foreign_keys {
        TriggerPolicy::Skip => "skip",
        TriggerPolicy::Enforce => "enforce",
    };
    writeln!(out, "      triggers_and_foreign_keys: {triggers}")?;
    writeln!(out, "      synchronous_commit: {}", on_off(target.synchronous_commit))?;
    writeln!(out, "      lock_timeout: {}", show_duration(target.lock_timeout))?;
    write_policies(out, flow)
}

fn write_policies(out: &mut String, flow: &FlowSettings) -> fmt::Result {
    let policy = |policy, relaxed| match policy {
        RowPolicy::Quarantine => "quarantine",
        RowPolicy::Record => relaxed,
    };
    if !flow.labels.is_empty() {
        let labels = flow.labels.iter().map(|(name, value)| format!("{}: {}", quoted(name), quoted(value)));
        writeln!(out, "    labels: {{ {} }}", labels.collect::<Vec<_>>().join(", "))?;
    }
    writeln!(out, "    on_missing_row: {}", policy(flow.target.on_missing_row, "skip_and_record"))?;
    writeln!(out, "    on_duplicate: {}", policy(flow.target.on_duplicate, "overwrite_and_record"))?;
    if flow.from_now {
        writeln!(out, "    start: from_now")?;
    }
    writeln!(out, "    heartbeat: {{ interval: {} }}", show_duration(flow.source.heartbeat_interval))?;
    writeln!(out, "    apply: {}", group(&flow.group))?;
    writeln!(
        out,
        "    log: {{ max_bytes: {}, retain_applied: {}, retain_applied_bytes: {} }}",
        show_bytes(flow.log_max_bytes),
        show_duration(flow.log_retain_applied),
        show_bytes(flow.log_retain_applied_bytes)
    )?;
    writeln!(out, "    dedup: {{ retain: {} }}", show_duration(flow.dedup_retain))
}

fn write_server(out: &mut String, server: &Server) -> fmt::Result {
    let url = if server.host.starts_with('/') {
        let (user, database) = (&server.user, &server.database);
        format!("postgresql://{user}@/{database}?host={}&port={}", server.host, server.port)
    } else {
        format!("postgresql://{}@{}:{}/{}", server.user, server.host, server.port, server.database)
    };
    writeln!(out, "      url: {}", quoted(&url))?;
    writeln!(out, "      tls: {}", tls(server.tls.mode))?;
    let files = [
        ("sslrootcert", &server.tls.ca_file),
        ("sslcert", &server.tls.certificate_file),
        ("sslkey", &server.tls.key_file),
    ];
    for (key, file) in files {
        if let Some(file) = file {
            writeln!(out, "      {key}: {}", quoted(&file.display().to_string()))?;
        }
    }
    match &server.password {
        Password::None => {}
        // Cannot come from a configuration file; whatever it is, it is not shown.
        Password::Literal(_) => writeln!(out, "      password: redacted")?,
        Password::Env(name) => writeln!(out, "      password: {{ env: {} }}", quoted(name))?,
        Password::File(path) => {
            writeln!(out, "      password: {{ file: {} }}", quoted(&path.display().to_string()))?;
        }
        Password::Passfile(path) => {
            writeln!(out, "      password: {{ passfile: {} }}", quoted(&path.display().to_string()))?;
        }
    }
    writeln!(out, "      connect_timeout: {}", show_duration(server.connect_timeout))
}

/// The limits as they are written in the file.
pub(super) fn group(limits: &GroupLimits) -> String {
    format!(
        "{{ group_transactions: {}, group_changes: {}, group_bytes: {} }}",
        limits.transactions,
        limits.changes,
        show_bytes(limits.bytes)
    )
}

pub(super) fn tls(mode: TlsMode) -> &'static str {
    match mode {
        TlsMode::Disable => "disable",
        TlsMode::Require => "require",
        TlsMode::VerifyCa => "verify-ca",
        TlsMode::VerifyFull => "verify-full",
    }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn table(table: &crate::settings::TableName) -> String {
    let part = |name: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if name.bytes().all(plain) { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
    };
    format!("{}.{}", part(&table.schema), part(&table.name))
}

fn list(values: &[String]) -> String {
    values.iter().map(|value| quoted(value)).collect::<Vec<_>>().join(", ")
}

/// A double-quoted YAML scalar where the bare one could be read as something else.
fn quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    let word = text.bytes().all(plain) && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let reserved = matches!(text, "true" | "false" | "yes" | "no" | "on" | "off" | "null");
    if word && !reserved { text.to_owned() } else { format!("{text:?}") }
}
