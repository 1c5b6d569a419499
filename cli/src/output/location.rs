//! Text of `stream locate-local`.

use std::io;

use trellara_api::stream::Location;

use super::{Out, human, table};

pub(crate) fn write(out: Out<'_>, found: &Location) -> io::Result<()> {
    writeln!(out, "{}  {}", found.lsn, found.text)?;
    writeln!(out)?;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    table::pairs(
        out,
        &[
            ("flow", format!("{}, incarnation {}", found.flow, found.incarnation)),
            ("outcome", text(&found.outcome)),
            ("xid", found.xid.map(|xid| xid.to_string()).unwrap_or_default()),
            ("end", text(&found.end_lsn)),
            ("committed", found.commit_time.map(|time| time.to_string()).unwrap_or_default()),
            ("next", text(&found.after_lsn)),
            ("start", human::known(&found.start_lsn, Clone::clone)),
            ("durable", found.durable_lsn.clone()),
            ("applied", human::known(&found.applied_lsn, Clone::clone)),
            ("log from", text(&found.first_lsn)),
            ("log to", text(&found.last_lsn)),
        ],
    )
}
