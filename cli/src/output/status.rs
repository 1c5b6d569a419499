//! Text of `status`.

use std::io;

use trellara_api::Known;
use trellara_api::status::{Check, Diagnosis, Diagnostics, FlowReport, Report, Summary};

use super::{Out, flow, human, quarantine, table};

pub(crate) fn summary(out: Out<'_>, summary: &Summary) -> io::Result<()> {
    let up = human::age(summary.at, summary.started);
    writeln!(out, "{}  trellara {}, up {up}, {} flows", summary.instance, summary.version, summary.flows)?;
    let phases: Vec<String> =
        summary.phases.iter().map(|(phase, count)| format!("{phase} {count}")).collect();
    let quarantine = match &summary.oldest_quarantine {
        Some(oldest) => format!(
            "{} open, oldest {} of {}, {}",
            summary.open_quarantine,
            oldest.id,
            oldest.flow,
            human::age(summary.at, oldest.at)
        ),
        None => "none open".to_owned(),
    };
    let store = human::known(&summary.store, |store| match &store.free_bytes {
        Known::Value(free) => {
            format!("{} in the log, {} free", human::bytes(store.log_bytes), human::bytes(*free))
        }
        Known::Unknown { .. } => format!("{} in the log", human::bytes(store.log_bytes)),
    });
    let lag = format!(
        "{}, {}",
        human::known(&summary.lag_bytes, |bytes| human::bytes(*bytes)),
        human::known(&summary.lag_seconds, |seconds| human::seconds(*seconds))
    );
    table::pairs(
        out,
        &[("phases", phases.join(", ")), ("lag", lag), ("quarantine", quarantine), ("store", store)],
    )?;
    if !summary.worst.is_empty() {
        writeln!(out)?;
        flow::lines(out, &summary.worst, summary.at)?;
        let next = summary.worst.iter().find_map(|line| line.next.as_ref());
        if let Some(next) = next {
            writeln!(out, "\nnext: {next}")?;
        }
    }
    flow::partial(out, &summary.partial)
}

pub(crate) fn diagnostics(out: Out<'_>, found: &Diagnostics) -> io::Result<()> {
    for diagnosis in &found.flows {
        diagnose(out, diagnosis, found)?;
        writeln!(out)?;
    }
    match found.flows.len() {
        0 => writeln!(out, "all {} flows are streaming", found.streaming)?,
        wrong => writeln!(out, "{wrong} flows not streaming, {} streaming", found.streaming)?,
    }
    flow::partial(out, &found.partial)
}

fn diagnose(out: Out<'_>, diagnosis: &Diagnosis, found: &Diagnostics) -> io::Result<()> {
    let line = &diagnosis.line;
    writeln!(out, "{}  {} for {}", line.flow, line.phase, human::age(found.at, line.since))?;
    flow::conditions(out, &diagnosis.conditions, found.at)?;
    for record in &diagnosis.quarantine {
        writeln!(out, "  {}", quarantine::one_line(record))?;
    }
    let log = human::known(&diagnosis.log, |log| {
        format!("{} of {}", human::bytes(log.bytes), human::bytes(log.max_bytes))
    });
    let lag = human::known(&line.lag_bytes, |bytes| human::bytes(*bytes));
    writeln!(out, "  log {log}, lag {lag}")?;
    match &line.next {
        Some(next) => writeln!(out, "  next: {next}"),
        None => Ok(()),
    }
}

pub(crate) fn report(out: Out<'_>, report: &Report) -> io::Result<()> {
    for flow in &report.flows {
        report_flow(out, flow, report)?;
        writeln!(out)?;
    }
    flow::partial(out, &report.partial)
}

fn report_flow(out: Out<'_>, flow: &FlowReport, report: &Report) -> io::Result<()> {
    writeln!(out, "{}  {}", flow.flow, flow.phase)?;
    let row = |check: &Check| {
        vec![
            format!("  {}", check.verdict.name()),
            check.check.clone(),
            check.text.clone(),
            check.evidence.clone().unwrap_or_default(),
            check.at.map(|at| format!("{} ago", human::age(report.at, at))).unwrap_or_default(),
        ]
    };
    let header = ["  VERDICT", "CHECK", "SEEN", "EVIDENCE", "AGE"];
    table::write(out, &header, flow.checks.iter().map(row).collect())
}
