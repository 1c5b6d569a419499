//! Failures as the machines see them: a place, a class, and what a person needs to read. Adapters
//! translate SQLSTATEs and I/O errors at the edge (`classify`); nothing above matches on an error text.

mod classify;
mod code;
mod evidence;
mod sqlstate;

pub use classify::{ErrorFacts, ErrorKind, Missing, classify, raised_in_function};
pub use code::Code;
pub use evidence::ChangeEvidence;
use trellara_storage::records::FailureDetail;

/// Where it failed. Only `Change` may end in quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    SourceConnect,
    Stream,
    TargetConnect,
    SessionSetup,
    Checkpoint,
    /// The n-th change of the transaction, counted from 0; the closing constraint check counts as the one
    /// after the last. Set-based statements carry the first change of their run.
    Change(u64),
    Commit,
}

impl Place {
    /// Which side of the flow it is on.
    pub const fn endpoint(self) -> Endpoint {
        match self {
            Place::SourceConnect | Place::Stream => Endpoint::Source,
            Place::TargetConnect
            | Place::SessionSetup
            | Place::Checkpoint
            | Place::Change(_)
            | Place::Commit => Endpoint::Target,
        }
    }
}

/// Which side does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    Source,
    Target,
}

/// What a failure means for its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Try again with backoff.
    Transient,
    /// Wait for the other side; recovers by itself.
    Endpoint(Endpoint),
    RowData,
    SchemaContract,
    Integrity,
    Lineage,
    Fence,
    Defect,
    Unknown,
}

impl Class {
    /// The name in records, API and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Transient => "transient",
            Class::Endpoint(_) => "endpoint",
            Class::RowData => "row_data",
            Class::SchemaContract => "schema_contract",
            Class::Integrity => "integrity",
            Class::Lineage => "lineage",
            Class::Fence => "fence",
            Class::Defect => "defect",
            Class::Unknown => "unknown",
        }
    }
}

/// One failure, translated. `detail` holds PostgreSQL's own words and may carry row values: it goes into
/// evidence, never into a log line. `summary` is safe to log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub place: Place,
    pub class: Class,
    pub code: Code,
    pub summary: String,
    pub detail: Box<FailureDetail>,
    /// The failing change itself, which only `ChangeByChange` can name.
    pub evidence: Option<Box<ChangeEvidence>>,
}

impl Failure {
    /// The same failure, given up on as one that no rule explains.
    #[must_use]
    pub fn unclassified(mut self) -> Self {
        self.class = Class::Unknown;
        self.code = Code::Unclassified;
        self.detail.class = self.class.name().to_owned();
        self.detail.code = self.code.to_string();
        self
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.summary)
    }
}

impl std::error::Error for Failure {}
