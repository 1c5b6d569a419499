//! pgoutput messages, decoded as far as capture needs them: who, what, where; row bytes stay as sent.

use bytes::Bytes;
use trellara_storage::records::{ColumnRecord, Operation, ReplicaIdentity};
use trellara_storage::{Lsn, RelationId, Timestamp, Xid};

/// A relation as the stream describes it, before it has a version here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelationMessage {
    pub relation: RelationId,
    pub namespace: String,
    pub name: String,
    pub replica_identity: ReplicaIdentity,
    pub columns: Vec<ColumnRecord>,
}

/// One message of the stream. `xid` is set inside streamed segments only, where pgoutput names the
/// (sub-)transaction of each message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    Begin {
        final_lsn: Lsn,
        commit_time: Timestamp,
        xid: Xid,
    },
    Commit {
        commit_lsn: Lsn,
        end_lsn: Lsn,
        commit_time: Timestamp,
    },
    Origin {
        name: String,
    },
    Relation {
        xid: Option<Xid>,
        relation: RelationMessage,
    },
    /// Insert, update or delete; `body` is what follows the relation OID, checked to be well-formed.
    Change {
        xid: Option<Xid>,
        operation: Operation,
        relation: RelationId,
        body: Bytes,
    },
    /// `body` is option flags and relation OIDs as sent, after the relation count.
    Truncate {
        xid: Option<Xid>,
        relations: Vec<RelationId>,
        body: Bytes,
    },
    /// `body` is flags, LSN, prefix, length and content as sent.
    Logical {
        xid: Option<Xid>,
        transactional: bool,
        lsn: Lsn,
        prefix: String,
        body: Bytes,
    },
    StreamStart {
        xid: Xid,
        first_segment: bool,
    },
    StreamStop,
    StreamCommit {
        xid: Xid,
        commit_lsn: Lsn,
        end_lsn: Lsn,
        commit_time: Timestamp,
    },
    StreamAbort {
        xid: Xid,
        sub_xid: Xid,
    },
}
