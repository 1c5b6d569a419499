//! What is pinned on every connection, the stream included: values must read the same whatever a role, a
//! database or a server sets, and no timeout of theirs may end a session of ours.

use std::io;
use std::time::Duration;

use secrecy::SecretString;

use super::error::Error;
use super::passfile;
use crate::settings::{Password, Server};

/// Session parameters that all supported versions know; given at start-up, so that they cost no round trip.
const PINNED: &[(&str, &str)] = &[
    ("TimeZone", "UTC"),
    ("DateStyle", "ISO"),
    ("IntervalStyle", "postgres"),
    ("extra_float_digits", "3"),
    ("bytea_output", "hex"),
    ("lc_monetary", "C"),
    ("xmloption", "content"),
    // Off would turn a NULL element into the text "NULL".
    ("array_nulls", "on"),
    // A role under row security would read half a table without an error.
    ("row_security", "off"),
    ("search_path", "pg_catalog"),
    ("quote_all_identifiers", "off"),
    ("statement_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
    ("idle_session_timeout", "0"),
    ("default_transaction_read_only", "off"),
    // The space is escaped for the `options` parameter.
    ("default_transaction_isolation", "read\\ committed"),
];

/// Known from 17 on only, and a start-up parameter that a server does not know is fatal.
pub(super) const PINNED_SINCE_17: &str = "SET transaction_timeout = 0";

/// The first version, in PostgreSQL's numbering, that knows [`PINNED_SINCE_17`].
pub(super) const VERSION_17: u32 = 170_000;

/// What one session adds to the pinned settings.
#[derive(Clone, Debug)]
pub struct Session {
    pub application_name: String,
    pub lock_timeout: Duration,
}

/// The `options` start-up parameter.
pub(super) fn start_up_options(session: &Session, more: &[(&str, String)]) -> String {
    let mut options = String::new();
    let lock_timeout = ("lock_timeout", session.lock_timeout.as_millis().to_string());
    let pinned = PINNED.iter().map(|(name, value)| (*name, (*value).to_owned()));
    for (name, value) in pinned.chain([lock_timeout]).chain(more.iter().cloned()) {
        options.push_str("-c ");
        options.push_str(name);
        options.push('=');
        options.push_str(&value);
        options.push(' ');
    }
    options
}

/// `15.18 (Debian 15.18-0)` as 150018, the form that PostgreSQL compares by; a release to come counts as its
/// version's first.
pub(super) fn version_number(text: &str) -> Option<u32> {
    let number = text.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
    let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
    Some(major.parse::<u32>().ok()? * 10_000 + minor.parse::<u32>().ok()?)
}

/// Read at every connect, so that rotation needs no restart.
pub(super) async fn read_password(server: &Server) -> Result<Option<SecretString>, Error> {
    match &server.password {
        Password::None => Ok(None),
        Password::Literal(secret) => Ok(Some(secret.clone())),
        Password::Env(name) => std::env::var(name)
            .map(|value| Some(value.into()))
            .map_err(|error| Error::Password(io::Error::other(format!("variable {name}: {error}")))),
        Password::File(path) => {
            let text = tokio::fs::read_to_string(path).await.map_err(Error::Password)?;
            Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned().into()))
        }
        Password::Passfile(path) => passfile::read(path, server).await.map_err(Error::Password),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_read_as_postgresql_numbers_them() {
        let texts = ["15.18 (Debian 15.18-0+deb12u1)", "18.4", "17devel", "16beta2", "nonsense"];
        let numbers = [Some(150_018), Some(180_004), Some(170_000), Some(160_000), None];
        assert_eq!(texts.map(version_number), numbers);
    }

    #[test]
    fn start_up_options_escape_what_holds_a_space() {
        let session = Session { application_name: "t".into(), lock_timeout: Duration::from_secs(2) };
        let options = start_up_options(&session, &[("wal_sender_timeout", "30000".into())]);
        assert!(options.contains("-c default_transaction_isolation=read\\ committed "));
        assert!(options.contains("-c lock_timeout=2000 -c wal_sender_timeout=30000 "));
    }
}
