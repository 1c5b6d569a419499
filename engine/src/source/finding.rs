//! What is wrong with a source's set-up, and the SQL that puts it right.

use trellara_actors::failure::{Code, ErrorFacts, ErrorKind, Failure, Place, classify};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The flow runs; someone should know.
    Warning,
    /// The flow cannot start like this.
    Blocking,
}

/// One thing found at the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    pub code: Code,
    /// Names objects and settings, never row values.
    pub what: String,
    /// SQL for the source, exact and complete; empty where a person has to decide.
    pub remedy: Vec<String>,
}

impl Finding {
    pub(super) fn blocking(code: Code, what: impl Into<String>, remedy: Vec<String>) -> Self {
        Self { severity: Severity::Blocking, code, what: what.into(), remedy }
    }

    pub(super) fn warning(code: Code, what: impl Into<String>, remedy: Vec<String>) -> Self {
        Self { severity: Severity::Warning, code, what: what.into(), remedy }
    }

    /// The refusal to start because of it.
    pub(super) fn into_failure(self) -> Failure {
        let facts = ErrorFacts {
            kind: Some(ErrorKind::Finding(self.code)),
            message: self.what.clone(),
            remedy: self.remedy,
            ..ErrorFacts::default()
        };
        // The code's title alone sends nobody to the right object.
        Failure { summary: self.what, ..classify(Place::SourceConnect, facts) }
    }
}
