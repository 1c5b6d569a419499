//! Text of `config reload`.

use std::io;

use trellara_api::config::{FieldChange, Reload};

use super::Out;

pub(crate) fn write(out: Out<'_>, report: &Reload) -> io::Result<()> {
    for flow in &report.added {
        writeln!(out, "+ {flow}")?;
    }
    for change in &report.changed {
        writeln!(out, "~ {}", change.flow)?;
        change.fields.iter().try_for_each(|field| write_field(out, field))?;
    }
    for flow in &report.detached {
        writeln!(out, "- {flow}  detached: stops, its slot stays; then trellara flow remove {flow}")?;
    }
    if !report.needs_restart.is_empty() {
        writeln!(out, "! after a restart of the engine only")?;
        report.needs_restart.iter().try_for_each(|field| write_field(out, field))?;
    }
    writeln!(out, "{}", conclusion(report))
}

fn write_field(out: Out<'_>, field: &FieldChange) -> io::Result<()> {
    writeln!(out, "    {}: {} -> {}", field.field, shown(&field.from), shown(&field.to))?;
    match &field.refused {
        Some(way) => writeln!(out, "        refused while the flow lives: {way}"),
        None => Ok(()),
    }
}

fn shown(text: &str) -> &str {
    if text.is_empty() { "(none)" } else { text }
}

fn conclusion(report: &Reload) -> String {
    let unchanged = format!("{} flows unchanged", report.unchanged);
    if report.is_empty() {
        return format!("nothing to change, {unchanged}");
    }
    let what = match report {
        Reload { applied: true, .. } => "reloaded",
        report if report.is_refused() => "nothing changed: refused changes above",
        Reload { needs_yes: true, dry_run: false, .. } => {
            "nothing changed: many flows would be detached, confirm with --yes"
        }
        Reload { needs_yes: true, .. } => "dry run, nothing changed; will want --yes: many flows detach",
        _ => "dry run, nothing changed",
    };
    format!("{what}, {unchanged}")
}
