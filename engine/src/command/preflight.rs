//! `preflight`: asks every source and target what would stop the flow, and changes nothing.

use std::fmt::Write;

use serde_json::{Value, json};
use trellara_actors::ports::TargetPort;

use super::{Common, Exit, Output, answer, complain};
use crate::runtime::Probe;
use crate::settings::FlowSettings;
use crate::source::Severity;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    common: Common,
    /// Only these flows; a name, its source, or a pattern
    #[arg(long)]
    flow: Vec<String>,
    /// Only flows with this label, `name=value`
    #[arg(long)]
    label: Vec<String>,
}

/// One thing that was found, at one side of one flow.
struct Found {
    side: &'static str,
    blocking: bool,
    code: String,
    what: String,
    remedy: Vec<String>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let settings = match arguments.common.load() {
        Ok(settings) => settings,
        Err(invalid) => {
            complain(&invalid.to_string());
            return Ok(Exit::Finding);
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut reports = Vec::new();
    for flow in settings.flows.iter().filter(|flow| selected(flow, arguments)) {
        reports.push((flow.name.to_string(), runtime.block_on(probe(flow))));
    }
    match arguments.common.output {
        Output::Json => answer(&as_json(&reports).to_string()),
        Output::Text => answer(&as_text(&reports)),
    }
    let blocked = reports.iter().any(|(_, found)| found.iter().any(|found| found.blocking));
    Ok(if blocked { Exit::Finding } else { Exit::Done })
}

fn selected(flow: &FlowSettings, arguments: &Arguments) -> bool {
    let name = flow.name.to_string();
    let named = |pattern: &String| {
        pattern == flow.name.source()
            || globset::Glob::new(pattern).is_ok_and(|glob| glob.compile_matcher().is_match(&name))
    };
    let labelled = |wanted: &String| {
        flow.labels.iter().any(|(label, value)| wanted.split_once('=') == Some((label, value)))
    };
    (arguments.flow.is_empty() || arguments.flow.iter().any(named)) && arguments.label.iter().all(labelled)
}

async fn probe(flow: &FlowSettings) -> Vec<Found> {
    let failed = |side, failure: trellara_actors::failure::Failure| Found {
        side,
        blocking: true,
        code: failure.code.to_string(),
        // No row was touched yet, so the server's own words hold no values.
        what: format!("{} ({})", failure.summary, failure.detail.message),
        remedy: failure.detail.remedy,
    };
    let mut found = Vec::new();
    let probe = match Probe::new(flow) {
        Ok(probe) => probe,
        Err(error) => {
            complain(&format!("cannot start threads: {error}"));
            return found;
        }
    };
    match probe.source.preflight().await {
        Ok(findings) => found.extend(findings.into_iter().map(|finding| Found {
            side: "source",
            blocking: finding.severity == Severity::Blocking,
            code: finding.code.to_string(),
            what: finding.what,
            remedy: finding.remedy,
        })),
        Err(failure) => found.push(failed("source", failure)),
    }
    if let Err(failure) = probe.target.connect().await {
        found.push(failed("target", failure));
    }
    found
}

fn as_json(reports: &[(String, Vec<Found>)]) -> Value {
    let findings = |found: &[Found]| -> Vec<Value> {
        let one = |found: &Found| {
            json!({
                "side": found.side,
                "blocking": found.blocking,
                "code": found.code,
                "what": found.what,
                "remedy": found.remedy,
            })
        };
        found.iter().map(one).collect()
    };
    let flows = reports.iter().map(|(flow, found)| json!({ "flow": flow, "findings": findings(found) }));
    json!({ "flows": flows.collect::<Vec<_>>() })
}

fn as_text(reports: &[(String, Vec<Found>)]) -> String {
    let mut text = String::new();
    for (flow, found) in reports {
        let verdict = match (found.is_empty(), found.iter().any(|found| found.blocking)) {
            (true, _) => "ready",
            (false, true) => "blocked",
            (false, false) => "ready, with warnings",
        };
        let _ = writeln!(text, "{flow}  {verdict}");
        for Found { side, blocking, code, what, remedy } in found {
            let weight = if *blocking { "blocks" } else { "warning" };
            let _ = writeln!(text, "  {side:<7} {weight:<8} {code}  {what}");
            for sql in remedy {
                let _ = writeln!(text, "  {:<16} {sql}", "");
            }
        }
    }
    text
}
