//! The settings of an apply transaction. Each is SET LOCAL: pooled connections serve many flows, and a
//! target's trigger function may have left anything behind in the session.

use std::fmt::Write;

use crate::postgres::ident::literal;
use crate::settings::{TargetSettings, TriggerPolicy};

/// Values must read the same whatever a role or a database sets.
const PINNED: &str = "\
SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'; SET LOCAL IntervalStyle = 'postgres'; \
SET LOCAL extra_float_digits = 3; SET LOCAL bytea_output = 'hex'; SET LOCAL lc_monetary = 'C'; \
SET LOCAL xmloption = 'content'; SET LOCAL array_nulls = on; SET LOCAL row_security = off; \
SET LOCAL search_path = pg_catalog; SET LOCAL statement_timeout = 0; \
SET LOCAL idle_in_transaction_session_timeout = 0";

/// BEGIN with everything pinned, as one simple query.
pub(super) fn opening(settings: &TargetSettings) -> String {
    let role = match settings.triggers_and_foreign_keys {
        TriggerPolicy::Skip => "replica",
        TriggerPolicy::Enforce => "origin",
    };
    let synchronous = if settings.synchronous_commit { "on" } else { "off" };
    let mut text = format!("BEGIN ISOLATION LEVEL READ COMMITTED; {PINNED}");
    write!(
        text,
        "; SET LOCAL session_replication_role = {role}; SET LOCAL synchronous_commit = {synchronous}; \
         SET LOCAL lock_timeout = {}",
        settings.lock_timeout.as_millis()
    )
    .expect("writing to a String");
    text
}

/// The encoding in which values are sent from here on. Statements are prepared in UTF-8.
pub(super) fn encoding(name: &str) -> String {
    format!("SET LOCAL client_encoding = {}", literal(name))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::apply::testing::settings;

    #[test]
    fn the_policy_decides_the_replication_role() {
        let mut settings = settings();
        assert!(opening(&settings).contains("session_replication_role = replica"));
        settings.triggers_and_foreign_keys = TriggerPolicy::Enforce;
        assert!(opening(&settings).contains("session_replication_role = origin"));
    }

    #[test]
    fn nothing_is_set_beyond_the_transaction() {
        let settings = TargetSettings { lock_timeout: Duration::from_millis(1500), ..settings() };
        let text = opening(&settings);
        assert!(text.contains("lock_timeout = 1500"));
        assert!(text.split(';').skip(1).all(|part| part.trim().starts_with("SET LOCAL ")));
    }
}
