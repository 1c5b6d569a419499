//! What is kept. A record says everything needed to read it later without other local state; what may
//! only live in memory cannot be represented here.

mod audit;
mod event;
mod flow;
mod quarantine;
mod relation;
mod store;
mod transaction;

pub use audit::AuditRecord;
pub use event::EventRecord;
pub use flow::{
    Durable, Floor, FlowIdentity, FlowPart, Lineage, LoggedBytes, PruneRule, PublicationIdentity, StartMode,
};
pub use quarantine::{
    Attempt, ChangeImage, ColumnValue, FailureDetail, QuarantineAction, QuarantineRecord, QuarantineState,
    Resolution,
};
pub use relation::{ColumnRecord, RelationRecord, ReplicaIdentity};
pub use store::{RecoveryMark, StoreIdentity};
pub use transaction::{
    ArchivedChangeBlock, ArchivedChangeHead, ArchivedContent, ArchivedDedupRecord, ArchivedManifest,
    ArchivedOperation, ArchivedTransactionRecord, ChangeBlock, ChangeHead, Content, DedupRecord, Manifest,
    Operation, Outcome, PartRef, TransactionHeader, TransactionRecord,
};
