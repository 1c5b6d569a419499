//! Versions of relation descriptions: which one a change refers to.
//!
//! A description gets its version by digest, so a repeated message is not a change, and a description that
//! comes back gets its old number. Inside a streamed transaction descriptions are its own until it commits:
//! it may have altered a table that the others still see as it was.

use std::collections::BTreeMap;

use trellara_storage::records::RelationRecord;
use trellara_storage::{Lsn, RelationDigest, RelationId, RelationVersion};

use super::digest::relation_digest;
use super::message::RelationMessage;

/// The versions that a change may refer to, by relation.
pub(super) type Current = BTreeMap<RelationId, RelationVersion>;

/// Every version of every relation of one incarnation.
#[derive(Clone, Debug, Default)]
pub(super) struct Relations {
    versions: BTreeMap<RelationId, Vec<(RelationVersion, RelationDigest)>>,
}

impl Relations {
    pub(super) fn new(known: &[RelationRecord]) -> Self {
        let mut relations = Self::default();
        for record in known {
            relations.add(record.relation, record.version, record.digest);
        }
        relations
    }

    pub(super) fn digest(&self, relation: RelationId, version: RelationVersion) -> Option<RelationDigest> {
        let versions = self.versions.get(&relation)?;
        versions.iter().find(|(known, _)| *known == version).map(|(_, digest)| *digest)
    }

    /// The version of this description, and its record when it is new here.
    pub(super) fn version_of(
        &mut self,
        message: RelationMessage,
        valid_from: Lsn,
        encoding: &str,
    ) -> (RelationVersion, Option<RelationRecord>) {
        let digest =
            relation_digest(&message.namespace, &message.name, message.replica_identity, &message.columns);
        let known = self.versions.entry(message.relation).or_default();
        if let Some((version, _)) = known.iter().find(|(_, other)| *other == digest) {
            return (*version, None);
        }
        let newest = known.iter().map(|(version, _)| version.get()).max().unwrap_or(0);
        let version = RelationVersion::new(newest + 1);
        known.push((version, digest));
        let record = RelationRecord {
            relation: message.relation,
            version,
            digest,
            namespace: message.namespace,
            name: message.name,
            replica_identity: message.replica_identity,
            columns: message.columns,
            valid_from,
            encoding: encoding.to_owned(),
        };
        (version, Some(record))
    }

    fn add(&mut self, relation: RelationId, version: RelationVersion, digest: RelationDigest) {
        self.versions.entry(relation).or_default().push((version, digest));
    }
}
