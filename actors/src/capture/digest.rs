//! The transaction digest: xxh3-128 over the identity (commit LSN, xid) and the surviving changes in order,
//! each with the digests of the relations that it touches.
//!
//! Capture computes it when a transaction is whole, apply checks it before the first statement. It must not
//! depend on how a transaction was delivered (streamed or not, in parts or inline), nor on numbers that are
//! only valid in one store: relation versions are replaced by relation digests.

use std::collections::BTreeSet;

use trellara_storage::records::{
    ArchivedChangeBlock, ArchivedOperation, ChangeBlock, ColumnRecord, Operation, ReplicaIdentity,
};
use trellara_storage::{Lsn, RelationDigest, RelationId, RelationVersion, TransactionDigest, Xid};
use xxhash_rust::xxh3::Xxh3;

/// What the changes of a transaction came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    pub digest: TransactionDigest,
    /// Surviving changes, and the bytes of their bodies.
    pub changes: u64,
    pub bytes: u64,
}

/// Why no digest could be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undigestible {
    #[error("relation {0} version {1} is not known")]
    UnknownVersion(RelationId, RelationVersion),
    #[error("a change lies outside of its block")]
    OutOfBounds,
    #[error("the body of a truncate is malformed")]
    Truncate,
}

/// Digests one transaction, block by block.
pub struct TransactionHasher<'a> {
    hasher: Xxh3,
    relations: &'a dyn Fn(RelationId, RelationVersion) -> Option<RelationDigest>,
    aborted: BTreeSet<u32>,
    changes: u64,
    bytes: u64,
}

impl std::fmt::Debug for TransactionHasher<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TransactionHasher").field("changes", &self.changes).finish_non_exhaustive()
    }
}

impl<'a> TransactionHasher<'a> {
    /// `aborted` are the sub-transactions whose changes do not survive; `relations` resolves versions.
    pub fn new(
        commit_lsn: Lsn,
        xid: Xid,
        aborted: impl IntoIterator<Item = u32>,
        relations: &'a dyn Fn(RelationId, RelationVersion) -> Option<RelationDigest>,
    ) -> Self {
        let mut hasher = Xxh3::new();
        hasher.update(&commit_lsn.get().to_be_bytes());
        hasher.update(&xid.get().to_be_bytes());
        Self { hasher, relations, aborted: aborted.into_iter().collect(), changes: 0, bytes: 0 }
    }

    /// # Errors
    /// Any `Undigestible`.
    pub fn block(&mut self, block: &ChangeBlock) -> Result<(), Undigestible> {
        for head in &block.heads {
            let body = slice(&block.body, head.offset, head.length)?;
            self.change(head.operation, head.relation, head.version, head.sub_xid, body)?;
        }
        Ok(())
    }

    /// As `block`, of a record read in place.
    ///
    /// # Errors
    /// Any `Undigestible`.
    pub fn archived(&mut self, block: &ArchivedChangeBlock) -> Result<(), Undigestible> {
        for head in block.heads.iter() {
            let body = slice(&block.body, head.offset.to_native(), head.length.to_native())?;
            let (relation, version) = (head.relation.to_native(), head.version.to_native());
            self.change(operation(head.operation), relation, version, head.sub_xid.to_native(), body)?;
        }
        Ok(())
    }

    pub fn finish(self) -> Summary {
        let digest = TransactionDigest::new(self.hasher.digest128().to_be_bytes());
        Summary { digest, changes: self.changes, bytes: self.bytes }
    }

    fn change(
        &mut self,
        operation: Operation,
        relation: u32,
        version: u32,
        sub_xid: u32,
        body: &[u8],
    ) -> Result<(), Undigestible> {
        if self.aborted.contains(&sub_xid) {
            return Ok(());
        }
        self.changes += 1;
        self.bytes += body.len() as u64;
        self.hasher.update(&[operation as u8]);
        match operation {
            Operation::Insert | Operation::Update | Operation::Delete => {
                self.relation(RelationId::new(relation), RelationVersion::new(version))?;
                self.bytes_of(body);
            }
            Operation::Truncate => {
                let truncate = Truncate::read(body).ok_or(Undigestible::Truncate)?;
                self.bytes_of(&[truncate.flags]);
                for (relation, version) in truncate.relations {
                    self.relation(relation, version)?;
                }
            }
            Operation::Message => self.bytes_of(body),
        }
        Ok(())
    }

    fn relation(&mut self, relation: RelationId, version: RelationVersion) -> Result<(), Undigestible> {
        let digest =
            (self.relations)(relation, version).ok_or(Undigestible::UnknownVersion(relation, version))?;
        self.hasher.update(digest.bytes());
        Ok(())
    }

    fn bytes_of(&mut self, body: &[u8]) {
        self.hasher.update(&(body.len() as u64).to_be_bytes());
        self.hasher.update(body);
    }
}

/// The body of a `Truncate` change: option flags as sent (1 cascade, 2 restart identity), then each relation
/// with the version that describes it, all big-endian. The stream's own form names relations only, and a
/// record must be decodable without the stream that it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truncate {
    pub flags: u8,
    pub relations: Vec<(RelationId, RelationVersion)>,
}

impl Truncate {
    pub fn body(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(1 + 8 * self.relations.len());
        body.push(self.flags);
        for (relation, version) in &self.relations {
            body.extend_from_slice(&relation.get().to_be_bytes());
            body.extend_from_slice(&version.get().to_be_bytes());
        }
        body
    }

    /// None when the body is malformed.
    pub fn read(body: &[u8]) -> Option<Self> {
        let (flags, rest) = body.split_first()?;
        let (pairs, []) = rest.as_chunks::<8>() else { return None };
        let relations = pairs
            .iter()
            .map(|&[a, b, c, d, e, f, g, h]| {
                let relation = RelationId::new(u32::from_be_bytes([a, b, c, d]));
                (relation, RelationVersion::new(u32::from_be_bytes([e, f, g, h])))
            })
            .collect();
        Some(Self { flags: *flags, relations })
    }
}

/// xxh3-128 over a relation's name, replica identity and columns. Every text is preceded by its length, so
/// that no two descriptions run into the same bytes.
pub fn relation_digest(
    namespace: &str,
    name: &str,
    replica_identity: ReplicaIdentity,
    columns: &[ColumnRecord],
) -> RelationDigest {
    let mut hasher = Xxh3::new();
    let text = |hasher: &mut Xxh3, text: &str| {
        hasher.update(&(text.len() as u64).to_be_bytes());
        hasher.update(text.as_bytes());
    };
    text(&mut hasher, namespace);
    text(&mut hasher, name);
    hasher.update(&[match replica_identity {
        ReplicaIdentity::Default => b'd',
        ReplicaIdentity::Nothing => b'n',
        ReplicaIdentity::Full => b'f',
        ReplicaIdentity::Index => b'i',
    }]);
    for column in columns {
        text(&mut hasher, &column.name);
        hasher.update(&column.type_oid.to_be_bytes());
        hasher.update(&column.type_modifier.to_be_bytes());
        hasher.update(&[u8::from(column.key), u8::from(column.type_name.is_some())]);
        if let Some((type_namespace, type_name)) = &column.type_name {
            text(&mut hasher, type_namespace);
            text(&mut hasher, type_name);
        }
    }
    RelationDigest::new(hasher.digest128().to_be_bytes())
}

fn slice(body: &[u8], offset: u32, length: u32) -> Result<&[u8], Undigestible> {
    let start = offset as usize;
    let end = start.checked_add(length as usize).ok_or(Undigestible::OutOfBounds)?;
    body.get(start..end).ok_or(Undigestible::OutOfBounds)
}

fn operation(archived: ArchivedOperation) -> Operation {
    match archived {
        ArchivedOperation::Insert => Operation::Insert,
        ArchivedOperation::Update => Operation::Update,
        ArchivedOperation::Delete => Operation::Delete,
        ArchivedOperation::Truncate => Operation::Truncate,
        ArchivedOperation::Message => Operation::Message,
    }
}
