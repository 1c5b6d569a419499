//! Aligned columns without borders.

use std::io;

use comfy_table::{ContentArrangement, Table, presets};

use super::Out;

/// Rows under a header, indented; nothing at all without rows.
pub(super) fn write(out: Out<'_>, header: &[&str], rows: Vec<Vec<String>>) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// `name  value` pairs, values aligned; a value of several lines stays under its beginning.
pub(super) fn pairs(out: Out<'_>, pairs: &[(&str, String)]) -> io::Result<()> {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
        let mut lines = value.lines();
        writeln!(out, "{name:width$}  {}", lines.next().unwrap_or_default())?;
        for line in lines {
            writeln!(out, "{:width$}  {line}", "")?;
        }
    }
    Ok(())
}
