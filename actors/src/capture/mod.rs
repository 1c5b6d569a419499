//! Capture: from a replication stream to whole transactions in the durable log.
//!
//! The one danger: confirming a position that is not fsynced here (I1). Only `ledger` says what may be
//! confirmed.

mod assembler;
mod context;
mod defect;
mod digest;
mod driver;
mod ledger;
mod lineage;
mod message;
mod redelivery;
mod relations;
mod report;
mod stumble;

pub use assembler::{Assembled, Assembler, Assembly, Ended, Whole};
pub use context::{CaptureContext, CaptureSettings};
pub use digest::{Summary, TransactionHasher, Truncate, Undigestible, relation_digest};
pub use driver::run;
pub use ledger::Ledger;
pub use lineage::{Known, LineageSettings, Verdict, judge, lineage_name};
pub use message::{Message, RelationMessage};
pub use report::{CaptureExit, CaptureProgress, CaptureReport};
