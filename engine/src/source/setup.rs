//! What every start checks before a slot or a stream is asked for, because it would lose rows silently or
//! hold up the source.

use trellara_actors::failure::Code;

use super::finding::Finding;
use crate::postgres::Error;
use crate::postgres::ident::literal;
use crate::postgres::replication::{Connection, Row};
use crate::settings::SourceSettings;

/// The oldest version that this engine reads from, and the oldest whose standbys decode.
const OLDEST: u32 = 150_000;
const OLDEST_STANDBY: u32 = 160_000;

/// Everything that stands against a start, in the order in which it should be put right.
pub(super) async fn findings(
    connection: &mut Connection,
    settings: &SourceSettings,
    instance: &str,
) -> Result<Vec<Finding>, Error> {
    if connection.server_version() < OLDEST {
        let what = format!("version {} of PostgreSQL is too old, 15 is needed", connection.server_version());
        return Ok(vec![Finding::blocking(Code::SourceUnsupported, what, Vec::new())]);
    }
    let mut findings = Vec::new();
    let sql = "SELECT current_setting('wal_level'), current_setting('synchronous_standby_names'), \
               pg_is_in_recovery()";
    let rows = connection.command(sql).await?;
    let row = rows.first().ok_or(Error::Protocol("settings"))?;
    let (wal_level, standbys, standby) = (row.text(0)?, row.text(1)?, row.text(2)? == "t");
    if standby && connection.server_version() < OLDEST_STANDBY {
        let what = "the source is a standby, which can be read from since version 16 only";
        findings.push(Finding::blocking(Code::SourceUnsupported, what, Vec::new()));
    }
    if wal_level != "logical" {
        let what = format!("wal_level is \"{wal_level}\"; a logical slot needs \"logical\" and a restart");
        let remedy = vec!["ALTER SYSTEM SET wal_level = 'logical';".to_owned()];
        findings.push(Finding::blocking(Code::SourceUnsupported, what, remedy));
    }
    if !settings.accept_synchronous && names_us(standbys, instance) {
        let what = format!(
            "synchronous_standby_names is '{standbys}', which takes this engine for a standby: commits would \
             wait for it (accept with source.accept_synchronous: true)"
        );
        findings.push(Finding::blocking(Code::SynchronousStandby, what, Vec::new()));
    }
    findings.extend(row_security(connection, settings).await?);
    Ok(findings)
}

/// Whether a walsender of this engine would count as a synchronous standby: the name list holds `*` or a
/// name that begins as ours do. Names compare without case, as PostgreSQL compares them.
fn names_us(setting: &str, instance: &str) -> bool {
    let ours = format!("trellara_{instance}_").to_lowercase();
    let names = setting.rsplit('(').next().unwrap_or(setting);
    let names = names.trim_end().trim_end_matches(')').split(',');
    names
        .map(|name| name.trim().trim_matches('"').to_lowercase())
        .any(|name| name == "*" || name.starts_with(&ours))
}

async fn row_security(connection: &mut Connection, settings: &SourceSettings) -> Result<Vec<Finding>, Error> {
    let publications: Vec<_> = settings.publications.iter().map(|name| literal(name)).collect();
    let sql = format!(
        "SELECT DISTINCT format('%I.%I', n.nspname, c.relname), quote_ident(current_user) \
         FROM pg_publication_tables t \
         JOIN pg_namespace n ON n.nspname = t.schemaname \
         JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename \
         WHERE t.pubname IN ({}) AND row_security_active(c.oid) ORDER BY 1",
        publications.join(", ")
    );
    let rows = connection.command(&sql).await?;
    let finding = |row: &Row| {
        let what = format!("row security hides rows of {} from this role", row.text(0)?);
        let remedy = vec![format!("ALTER ROLE {} BYPASSRLS;", row.text(1)?)];
        Ok(Finding::blocking(Code::RowSecurity, what, remedy))
    };
    rows.iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::names_us;

    #[test]
    fn a_standby_list_that_takes_this_engine_for_a_standby_is_recognised() {
        for setting in ["*", "ANY 1 (a, *)", "FIRST 2 (\"Trellara_West_1\", b)", "trellara_west_7"] {
            assert!(names_us(setting, "west"), "{setting}");
        }
        for setting in ["", "a", "FIRST 1 (a, b)", "trellara_east_1", "ANY 2 (trellara, x)"] {
            assert!(!names_us(setting, "west"), "{setting}");
        }
    }
}
