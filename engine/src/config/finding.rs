//! What is wrong with a configuration: collected, ordered, and shown all at once.

use std::cell::RefCell;
use std::fmt;

use super::tree::Origin;

/// One mistake: where, what, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// `trellara.yml:12`, or the environment.
    pub place: String,
    /// `flows[3].source.url`; empty for the file as a whole.
    pub path: String,
    pub what: String,
    pub instead: Option<String>,
}

/// Everything that is wrong, in the order of the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invalid {
    pub findings: Vec<Finding>,
}

/// More lines than this help nobody: thousands of flows may share one mistake.
const SHOWN: usize = 50;

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.what)?;
        match &self.instead {
            Some(instead) => write!(f, "\n    {instead}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in self.findings.iter().take(SHOWN) {
            writeln!(f, "{finding}")?;
        }
        match self.findings.len() {
            1 => write!(f, "1 mistake in the configuration"),
            found if found > SHOWN => write!(f, "{found} mistakes in the configuration, {SHOWN} shown"),
            found => write!(f, "{found} mistakes in the configuration"),
        }
    }
}

impl std::error::Error for Invalid {}

/// The collector that every part of the validation shares.
#[derive(Debug, Default)]
pub(super) struct Findings {
    found: RefCell<Vec<Finding>>,
}

impl Findings {
    pub(super) fn add(&self, origin: &Origin, what: impl Into<String>, instead: Option<String>) {
        let finding =
            Finding { place: origin.place.clone(), path: origin.path.clone(), what: what.into(), instead };
        let mut found = self.found.borrow_mut();
        // Flows inherit: a mistake in `defaults` is one mistake.
        if !found.contains(&finding) {
            found.push(finding);
        }
    }

    /// `Ok` with the value when nothing is wrong.
    pub(super) fn conclude<T>(self, value: Option<T>) -> Result<T, Invalid> {
        let mut findings = self.found.into_inner();
        match value {
            Some(value) if findings.is_empty() => Ok(value),
            Some(_) | None => {
                findings.sort_by_cached_key(|finding| position(&finding.place));
                Err(Invalid { findings })
            }
        }
    }
}

/// File and line apart, so that line 9 comes before line 10.
fn position(place: &str) -> (String, usize) {
    let split = place.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    split.map_or_else(|| (place.to_owned(), 0), |(file, line)| (file.to_owned(), line))
}
