//! Stable codes of everything that an operator can see. A number is never reused.

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $title:literal;)*) => {
        /// A stable code; reads the same in log, API, CLI and `docs/errors/`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $($(#[$doc])* $name),* }

        impl Code {
            pub const ALL: &[Code] = &[$(Code::$name),*];

            pub const fn number(self) -> u16 {
                match self { $(Code::$name => $number),* }
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
    RowDataInvalid = 101, "value is not valid at the target";
    ConstraintViolation = 102, "constraint violation at the target";
    RowMissing = 103, "row to change is missing at the target";
    RowDuplicate = 104, "row to insert already exists at the target";
    RowSuppressed = 105, "a target trigger or rule swallowed the change";
    TargetTriggerRaised = 106, "a target trigger or function raised an error";
    Unclassified = 199, "unclassified failure of a change";
    // 02xx: schema contract.
    TableMissing = 201, "table is missing at the target";
    ColumnMissing = 202, "column is missing at the target";
    ColumnTypeMismatch = 203, "column type does not fit at the target";
    KeyMissing = 204, "target has no usable unique index over the replica identity";
    ColumnRequired = 205, "target requires a column that the source does not send";
    ValueNotSent = 206, "the source did not send a value that the target needs";
    ContractBroken = 299, "target schema does not fit";
    // 03xx: integrity.
    RecordDamaged = 301, "log record is damaged";
    PartDamaged = 302, "part of a large transaction is missing or damaged";
    DigestMismatch = 303, "transaction digest does not match";
    RelationVersionMissing = 304, "relation version is missing in the store";
    // 04xx: lineage.
    SlotMissing = 401, "replication slot is missing";
    SlotInvalidated = 402, "replication slot was invalidated";
    SlotBeyondSafePoint = 403, "slot was confirmed beyond what is durable here or applied at the target";
    SystemIdentifierChanged = 404, "source is another cluster";
    TimelineDiverged = 405, "source's timeline does not contain the durable position";
    ServerBehind = 406, "source's position lies behind the durable position";
    AnotherHistory = 407, "source sends another history than the one received before";
    PublicationMissing = 408, "publication is missing";
    PublicationReplaced = 409, "publication was replaced";
    TargetLost = 410, "checkpoint row is gone from the target";
    TargetBehindLog = 411, "target is behind the oldest position in the log";
    Undecodable = 412, "the source cannot decode its own log at this position";
    StoreRecovered = 413, "store was recovered to an earlier point";
    // 05xx: endpoints.
    AuthenticationFailed = 501, "authentication refused";
    PermissionDenied = 502, "permission denied";
    DatabaseMissing = 503, "database does not exist";
    ReadOnly = 504, "server is read-only";
    ResourcesExhausted = 505, "server is out of disk, memory or connections";
    TlsFailed = 506, "TLS handshake or certificate check failed";
    NameResolution = 507, "host name does not resolve";
    ConnectFailed = 508, "cannot connect";
    ConnectionLost = 509, "connection lost";
    SlotInUse = 510, "replication slot is in use by another connection";
    ServerStarting = 511, "server is starting up or shutting down";
    TargetDamaged = 512, "target reports damaged data";
    Contention = 513, "lock, deadlock or serialization conflict";
    // 06xx: flow and engine.
    Fenced = 601, "another engine applies this flow";
    ProtocolDefect = 602, "unexpected answer of the replication protocol";
    SlotMismatch = 603, "slot of this name is not this flow's";
    SourceUnsupported = 604, "source is not set up for logical replication";
    TablesNotEmpty = 605, "dataset tables hold rows at the source";
    KeepsDying = 606, "flow keeps failing";
    Stalled = 607, "no progress while work is pending";
    Panicked = 608, "internal error";
    SynchronousStandby = 609, "source would wait for this engine as a synchronous standby";
    RowSecurity = 610, "row security would hide rows";
    // 07xx: store.
    LogFull = 701, "log budget is used up";
    StoreFull = 702, "no space left for the store";
    StoreDamaged = 703, "store is damaged";
    StoreFormat = 704, "store has another format version";
    StoreLocked = 705, "store is in use by another engine";
    StoreFailed = 706, "write to the store failed";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TRL-{:04}", self.number())
    }
}
