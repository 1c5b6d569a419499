//! Text of the `quarantine` commands.

use std::io;

use trellara_api::Time;
use trellara_api::quarantine::{
    Attempt, Cell, CellValue, FailureText, QuarantineDetail, QuarantineLine, QuarantineList, Replay,
};

use super::{Out, flow, human, table};

pub(crate) fn list(out: Out<'_>, list: &QuarantineList) -> io::Result<()> {
    if list.records.is_empty() {
        writeln!(out, "nothing is quarantined")?;
    }
    lines(out, &list.records, list.at)?;
    flow::partial(out, &list.partial)
}

pub(super) fn lines(out: Out<'_>, records: &[QuarantineLine], now: Time) -> io::Result<()> {
    let row = |record: &QuarantineLine| {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        vec![
            record.id.clone(),
            record.flow.clone(),
            record.state.name().to_owned(),
            human::age(now, record.at),
            record.code.clone(),
            text(&record.sqlstate),
            [text(&record.table), text(&record.constraint)].join(" ").trim().to_owned(),
            cells(&record.key, ", "),
        ]
    };
    let header = ["ID", "FLOW", "STATE", "AGE", "CODE", "SQLSTATE", "WHERE", "KEY"];
    table::write(out, &header, records.iter().map(row).collect())
}

/// What a diagnosis needs of a record.
pub(super) fn one_line(record: &QuarantineLine) -> String {
    let parts = [
        Some(record.id.clone()),
        Some(record.class.clone()),
        Some(format!("{} {}", record.code, record.title)),
        record.sqlstate.as_ref().map(|state| format!("SQLSTATE {state}")),
        record.operation.clone().zip(record.table.clone()).map(|(what, table)| format!("{what} on {table}")),
        record.constraint.as_ref().map(|constraint| format!("constraint {constraint}")),
        record.column.as_ref().map(|column| format!("column {column}")),
        (!record.key.is_empty()).then(|| format!("key {}", cells(&record.key, ", "))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

pub(crate) fn detail(out: Out<'_>, record: &QuarantineDetail) -> io::Result<()> {
    let line = &record.line;
    writeln!(out, "{}  {}  {} {}", line.id, line.state.name(), line.code, line.title)?;
    writeln!(out)?;
    table::pairs(out, &facts(record))?;
    if let Some(change) = &record.change {
        writeln!(out)?;
        image(out, "old row", &change.old)?;
        image(out, "new row", &change.new)?;
    }
    if let Some(row) = &record.conflicting_row {
        image(out, "conflicting row at the target", row)?;
    }
    if !record.failure.remedy.is_empty() {
        writeln!(out, "\nSQL for the target:")?;
        record.failure.remedy.iter().try_for_each(|sql| writeln!(out, "  {sql}"))?;
    }
    if record.attempt_list.len() > 1 {
        writeln!(out, "\nattempts:")?;
        let row = |attempt: &Attempt| format!("  {}  {}", attempt.at, attempt.failure.message);
        record.attempt_list.iter().try_for_each(|attempt| writeln!(out, "{}", row(attempt)))?;
    }
    match &line.next {
        Some(next) => writeln!(out, "\nnext: {next}"),
        None => Ok(()),
    }
}

fn facts(record: &QuarantineDetail) -> Vec<(&'static str, String)> {
    let line = &record.line;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let failed = match record.change_number {
        Some(number) => format!("change {number} of {}", record.changes),
        None => format!("the transaction as a whole, {} changes", record.changes),
    };
    let operation = record.change.as_ref().map(|change| {
        format!(
            "{} on {}.{}, key {}",
            change.operation,
            change.schema,
            change.table,
            cells(&change.key, ", ")
        )
    });
    let resolution = record.resolution.as_ref().map(|done| {
        let reason = done.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        format!("{} by {} at {}{reason}", done.action, done.actor, done.at)
    });
    let versions = [
        Some(format!("engine {}", record.engine_version)),
        record.source_version.as_ref().map(|version| format!("source {version}")),
        record.target_version.as_ref().map(|version| format!("target {version}")),
    ];
    vec![
        ("flow", line.flow.clone()),
        (
            "transaction",
            format!("commit {}, xid {}, incarnation {}", line.commit_lsn, record.xid, record.incarnation),
        ),
        ("committed", record.commit_time.to_string()),
        ("quarantined", line.at.to_string()),
        ("class", line.class.clone()),
        ("sqlstate", text(&line.sqlstate)),
        ("message", record.failure.message.clone()),
        ("detail", text(&record.failure.detail)),
        ("hint", text(&record.failure.hint)),
        ("context", text(&record.failure.context)),
        ("constraint", text(&line.constraint)),
        ("table", text(&line.table)),
        ("column", text(&line.column)),
        ("failed at", failed),
        ("operation", operation.unwrap_or_default()),
        ("target at", format!("applied {}", record.checkpoint_lsn)),
        ("digest", record.digest.clone()),
        ("versions", versions.into_iter().flatten().collect::<Vec<_>>().join(", ")),
        ("attempts", line.attempts.to_string()),
        ("resolution", resolution.unwrap_or_default()),
    ]
}

fn image(out: Out<'_>, title: &str, row: &[Cell]) -> io::Result<()> {
    if row.is_empty() {
        return Ok(());
    }
    writeln!(out, "{title}:")?;
    row.iter().try_for_each(|cell| writeln!(out, "  {} = {}", cell.column, value(&cell.value)))
}

pub(crate) fn replay(out: Out<'_>, replay: &Replay) -> io::Result<()> {
    let text = match (replay.check, replay.applied) {
        (true, true) => "would apply now",
        (true, false) => "would fail again",
        (false, true) => "replayed",
        (false, false) => "failed again, still open",
    };
    writeln!(out, "{}  {}  {text}", replay.id, replay.flow)?;
    if let Some(failure) = &replay.failure {
        write_failure(out, failure)?;
    }
    match &replay.next {
        Some(next) => writeln!(out, "next: {next}"),
        None => Ok(()),
    }
}

fn write_failure(out: Out<'_>, failure: &FailureText) -> io::Result<()> {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    table::pairs(
        out,
        &[
            ("  code", failure.code.clone()),
            ("  sqlstate", text(&failure.sqlstate)),
            ("  message", failure.message.clone()),
            ("  detail", text(&failure.detail)),
            ("  hint", text(&failure.hint)),
            ("  SQL for the target", failure.remedy.join("\n")),
        ],
    )
}

fn cells(cells: &[Cell], separator: &str) -> String {
    let cell = |cell: &Cell| format!("{}={}", cell.column, value(&cell.value));
    cells.iter().map(cell).collect::<Vec<_>>().join(separator)
}

fn value(value: &CellValue) -> String {
    match value {
        CellValue::Null => "NULL".to_owned(),
        CellValue::UnchangedToast => "(not sent: unchanged)".to_owned(),
        CellValue::Text(text) => text.clone(),
        CellValue::Bytes(hex) => format!("\\x{hex}"),
    }
}
