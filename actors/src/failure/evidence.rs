//! What the target adapter saw of the failing change: it goes into the quarantine record and nowhere else,
//! because it is made of row values.

use trellara_storage::RelationDigest;
use trellara_storage::records::{ChangeImage, ColumnValue};

/// The failing change and what stands in its way. Which change it was, `Failure::place` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeEvidence {
    pub image: Option<ChangeImage>,
    /// The target row that stands in the way, where a constraint names one.
    pub conflicting_row: Option<Vec<(String, ColumnValue)>>,
    /// The relation as the source described it for this change.
    pub source_relation: Option<RelationDigest>,
    /// The relation as the target's catalog shows it.
    pub target_relation: Option<RelationDigest>,
    /// `server_version` of the target.
    pub target_version: Option<String>,
}
