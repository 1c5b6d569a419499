//! A relation as the source described it, one version of it.

use serde::{Deserialize, Serialize};

use crate::{Lsn, RelationDigest, RelationId, RelationVersion};

/// PostgreSQL's `relreplident`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplicaIdentity {
    Default,
    Nothing,
    Full,
    Index,
}

/// One column, in the order of the source's tuples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnRecord {
    pub name: String,
    pub type_oid: u32,
    /// `atttypmod`, -1 without modifier.
    pub type_modifier: i32,
    /// `(namespace, name)` of a type that is not built in, as the stream's Type message gave it.
    pub type_name: Option<(String, String)>,
    /// Part of the replica identity.
    pub key: bool,
}

/// The value of the `relations` family. `version` counts per flow, incarnation and relation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelationRecord {
    pub relation: RelationId,
    pub version: RelationVersion,
    pub digest: RelationDigest,
    pub namespace: String,
    pub name: String,
    pub replica_identity: ReplicaIdentity,
    pub columns: Vec<ColumnRecord>,
    /// Everything with this version lies at or above this position.
    pub valid_from: Lsn,
    /// Encoding of the text in this relation's tuples (`pg_encoding_to_char`).
    pub encoding: String,
}
