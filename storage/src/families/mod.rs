//! The registry of column families, and one module per family with its keys, puts and reads. Retired
//! names stay reserved.

pub mod audit;
pub mod chunks;
pub mod dedup;
pub mod default;
pub mod events;
pub mod flows;
pub mod log;
pub mod quarantine;
pub mod relations;

use std::fmt;

/// One column family of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Format version, instance id, counters of the store itself.
    Default,
    /// Flow parts: identity, lineage, durable, applied, floor, phase.
    Flows,
    /// Committed transactions in commit order.
    Log,
    /// Parts of large or streamed transactions in arrival order.
    Chunks,
    /// What was received, kept longer than the log, to tell redelivery from another history.
    Dedup,
    /// Evidence of transactions that could not be applied.
    Quarantine,
    /// Versions of relation descriptions.
    Relations,
    /// Every state change of a flow.
    Events,
    /// Who did what, hash chained.
    Audit,
}

impl Family {
    pub const ALL: [Family; 9] = [
        Family::Default,
        Family::Flows,
        Family::Log,
        Family::Chunks,
        Family::Dedup,
        Family::Quarantine,
        Family::Relations,
        Family::Events,
        Family::Audit,
    ];

    /// The name on disk.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Default => "default",
            Family::Flows => "flows",
            Family::Log => "log",
            Family::Chunks => "chunks",
            Family::Dedup => "dedup",
            Family::Quarantine => "quarantine",
            Family::Relations => "relations",
            Family::Events => "events",
            Family::Audit => "audit",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Names family and key of a value that was not believed.
pub(crate) fn damaged(
    family: Family,
    flow: Option<crate::FlowId>,
    key: &[u8],
    damage: &dyn fmt::Display,
) -> crate::Error {
    let key = key.iter().fold(String::new(), |mut text, byte| {
        use fmt::Write;
        write!(text, "{byte:02x}").expect("writing to a String");
        text
    });
    crate::Error::Corruption { family, flow, key, what: damage.to_string() }
}
