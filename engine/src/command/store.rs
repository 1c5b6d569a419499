//! `store inspect` and `store recover`: the store, while no engine runs.

use anyhow::Context;
use clap::Subcommand;
use serde_json::{Value, json};
use trellara_actors::ports::Clock;
use trellara_storage::families::flows;
use trellara_storage::records::AuditRecord;
use trellara_storage::{FlowId, RocksStore};

use super::{Common, Exit, Output, answer, complain};
use crate::runtime::{SystemClock, rocks_settings};

#[derive(Debug, Subcommand)]
pub(super) enum Tool {
    /// Families, sizes, and what each flow holds
    Inspect(Inspect),
    /// Open a damaged store up to the damage, and put every flow through the lineage check
    Recover(Recover),
}

#[derive(Debug, clap::Args)]
pub(super) struct Inspect {
    #[command(flatten)]
    common: Common,
    /// Only this flow
    #[arg(long)]
    flow: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Recover {
    #[command(flatten)]
    common: Common,
    /// Why, for the audit trail
    #[arg(long)]
    reason: String,
}

pub(super) fn run(tool: &Tool) -> anyhow::Result<Exit> {
    match tool {
        Tool::Inspect(arguments) => inspect(arguments),
        Tool::Recover(arguments) => recover(arguments),
    }
}

fn inspect(arguments: &Inspect) -> anyhow::Result<Exit> {
    let settings = arguments.common.load()?;
    let (store, identity) = RocksStore::open_read_only(&settings.data_dir, rocks_settings(&settings))
        .context("cannot open the store")?;
    let families = store.usage()?;
    let wanted = |name: &str| arguments.flow.as_deref().is_none_or(|flow| name.starts_with(flow));
    let flows: Vec<Value> = flows::all(&store)?
        .into_iter()
        .map(|(flow, parts)| describe(flow, parts))
        .filter(|flow| flow["flow"].as_str().is_none_or(wanted))
        .collect();
    let report = json!({
        "instance": identity.instance,
        "created": identity.created,
        "families": families.iter().map(|family| json!({
            "family": family.family.name(), "keys": family.keys, "bytes": family.bytes,
        })).collect::<Vec<_>>(),
        "flows": flows,
    });
    match arguments.common.output {
        Output::Json => answer(&report.to_string()),
        Output::Text => answer(&as_text(&report)),
    }
    Ok(Exit::Done)
}

fn describe(flow: FlowId, parts: Result<flows::FlowParts, trellara_storage::Error>) -> Value {
    match parts {
        Ok(parts) => json!({
            "number": flow,
            "flow": parts.identity.name,
            "removed": parts.identity.removed,
            "incarnation": parts.lineage.as_ref().map(|lineage| lineage.incarnation),
            "durable": parts.durable.progress,
            "applied": parts.applied,
            "log": parts.used(),
            "pruned_below": parts.floor.map(|floor| floor.pruned_below),
        }),
        Err(error) => json!({ "number": flow, "damaged": error.to_string() }),
    }
}

fn as_text(report: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut lines = vec![format!("instance  {}", text(&report["instance"])), String::new()];
    lines.push(format!("{:<12} {:>14} {:>16}", "family", "keys (about)", "bytes"));
    for family in report["families"].as_array().into_iter().flatten() {
        let [name, keys, bytes] = ["family", "keys", "bytes"].map(|field| text(&family[field]));
        lines.push(format!("{name:<12} {keys:>14} {bytes:>16}"));
    }
    for flow in report["flows"].as_array().into_iter().flatten() {
        lines.push(String::new());
        lines.extend(flow.as_object().into_iter().flatten().map(|(field, value)| {
            let shown = match value.as_object() {
                Some(parts) => parts
                    .iter()
                    .map(|(part, value)| format!("{part} {}", text(value)))
                    .collect::<Vec<_>>()
                    .join(", "),
                None => text(value),
            };
            format!("{field:<12} {shown}")
        }));
    }
    lines.join("\n")
}

fn recover(arguments: &Recover) -> anyhow::Result<Exit> {
    let settings = arguments.common.load()?;
    let asked = AuditRecord {
        at: SystemClock::new().now(),
        actor: std::env::var("USER").unwrap_or_else(|_| "unknown".to_owned()),
        origin: "trellara-engine tool".to_owned(),
        action: "store recover".to_owned(),
        subject: settings.data_dir.display().to_string(),
        reason: Some(arguments.reason.clone()),
        outcome: "recovered".to_owned(),
        previous: String::new(),
    };
    let recovered = RocksStore::recover(&settings.data_dir, rocks_settings(&settings), &asked)
        .context("the store cannot be recovered; a store backup is the way")?;
    complain(
        "the store was opened up to the first damage, if there was any; what was acknowledged behind it is gone",
    );
    match arguments.common.output {
        Output::Json => answer(&json!({ "flows_to_check": recovered.marked }).to_string()),
        Output::Text => answer(&format!(
            "{} flows will pass the lineage check before they confirm or apply anything",
            recovered.marked.len()
        )),
    }
    Ok(Exit::Done)
}
