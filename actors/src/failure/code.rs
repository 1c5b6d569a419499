//! Stable codes of everything that an operator can see. A number is never reused.

use std::fmt;

use super::{Class, Endpoint};

macro_rules! class {
    (Endpoint, $side:ident) => {
        Class::Endpoint($side)
    };
    ($class:ident, $side:ident) => {
        Class::$class
    };
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $class:ident, $title:literal;)*) => {
        /// A stable code; reads the same in log, API, CLI and `docs/errors/`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $($(#[$doc])* $name),* }

        impl Code {
            pub const ALL: &[Code] = &[$(Code::$name),*];

            pub const fn number(self) -> u16 {
                match self { $(Code::$name => $number),* }
            }

            /// The class that a failure of this code has where nothing else is known; `classify` departs
            /// from it only for 53300, which is transient, and outside `Place::Change`.
            pub const fn class(self, side: Endpoint) -> Class {
                match self { $(Code::$name => class!($class, side)),* }
            }

            /// What it is, in a few words.
            pub const fn title(self) -> &'static str {
                match self { $(Code::$name => $title),* }
            }
        }
    };
}

codes! {
    // 01xx: what a transaction did, found at the target (row data).
    RowDataInvalid = 101, RowData, "value is not valid at the target";
    ConstraintViolation = 102, RowData, "constraint violation at the target";
    RowMissing = 103, RowData, "row to change is missing at the target";
    RowDuplicate = 104, RowData, "row to insert already exists at the target";
    RowSuppressed = 105, RowData, "a target trigger or rule swallowed the change";
    TargetTriggerRaised = 106, RowData, "a target trigger or function raised an error";
    Unclassified = 199, Unknown, "unclassified failure";
    // 02xx: schema contract.
    TableMissing = 201, SchemaContract, "table is missing at the target";
    ColumnMissing = 202, SchemaContract, "column is missing at the target";
    ColumnTypeMismatch = 203, SchemaContract, "column type does not fit at the target";
    KeyMissing = 204, SchemaContract, "target has no usable unique index over the replica identity";
    ColumnRequired = 205, SchemaContract, "target requires a column that the source does not send";
    ValueNotSent = 206, SchemaContract, "the source did not send a value that the target needs";
    ContractBroken = 299, SchemaContract, "target schema does not fit";
    // 03xx: integrity.
    RecordDamaged = 301, Integrity, "log record is damaged";
    PartDamaged = 302, Integrity, "part of a large transaction is missing or damaged";
    DigestMismatch = 303, Integrity, "transaction digest does not match";
    RelationVersionMissing = 304, Integrity, "relation version is missing in the store";
    // 04xx: lineage.
    SlotMissing = 401, Lineage, "replication slot is missing";
    SlotInvalidated = 402, Lineage, "replication slot was invalidated";
    SlotBeyondSafePoint = 403, Lineage, "slot was confirmed beyond what is durable here or applied at the target";
    SystemIdentifierChanged = 404, Lineage, "source is another cluster";
    TimelineDiverged = 405, Lineage, "source's timeline does not contain the durable position";
    ServerBehind = 406, Lineage, "source's position lies behind the durable position";
    AnotherHistory = 407, Lineage, "source sends another history than the one received before";
    PublicationMissing = 408, Lineage, "publication is missing";
    PublicationReplaced = 409, Lineage, "publication was replaced";
    TargetLost = 410, Lineage, "checkpoint row is gone from the target";
    TargetBehindLog = 411, Lineage, "target is behind the oldest position in the log";
    Undecodable = 412, Lineage, "the source cannot decode its own log at this position";
    StoreRecovered = 413, Lineage, "store was recovered to an earlier point";
    // 05xx: endpoints; the transient ones are tried again at once.
    AuthenticationFailed = 501, Endpoint, "authentication refused";
    PermissionDenied = 502, Endpoint, "permission denied";
    DatabaseMissing = 503, Endpoint, "database does not exist";
    ReadOnly = 504, Endpoint, "server is read-only";
    ResourcesExhausted = 505, Endpoint, "server is out of disk, memory or connections";
    TlsFailed = 506, Endpoint, "TLS handshake or certificate check failed";
    NameResolution = 507, Endpoint, "host name does not resolve";
    ConnectFailed = 508, Endpoint, "cannot connect";
    ConnectionLost = 509, Transient, "connection lost";
    SlotInUse = 510, Transient, "replication slot is in use by another connection";
    ServerStarting = 511, Transient, "server is starting up or shutting down";
    ServerDamaged = 512, Endpoint, "server reports damaged data";
    Contention = 513, Transient, "lock, deadlock or serialization conflict";
    StalePlan = 514, Transient, "prepared statement is out of date";
    ServerSystemError = 515, Endpoint, "server cannot use its file system";
    // 06xx: flow and engine.
    Fenced = 601, Fence, "another engine applies this flow";
    ProtocolDefect = 602, Defect, "unexpected answer of the replication protocol";
    SlotMismatch = 603, Defect, "slot of this name is not this flow's";
    SourceUnsupported = 604, Defect, "source is not set up for logical replication";
    TablesNotEmpty = 605, Defect, "dataset tables hold rows at the source";
    KeepsDying = 606, Defect, "flow keeps failing";
    Stalled = 607, Defect, "no progress while work is pending";
    Panicked = 608, Defect, "internal error";
    SynchronousStandby = 609, Defect, "source would wait for this engine as a synchronous standby";
    RowSecurity = 610, Defect, "row security would hide rows";
    StatementDefect = 611, Defect, "target refuses the form of a statement";
    // 07xx: store; states of capture or of the engine, never the class of a failure.
    LogFull = 701, Unknown, "log budget is used up";
    StoreFull = 702, Unknown, "no space left for the store";
    StoreDamaged = 703, Unknown, "store is damaged";
    StoreFormat = 704, Unknown, "store has another format version";
    StoreLocked = 705, Unknown, "store is in use by another engine";
    StoreFailed = 706, Unknown, "write to the store failed";
    TooManyFlows = 707, Unknown, "too many flows for the file descriptors";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TRL-{:04}", self.number())
    }
}
