//! Capture: from a replication stream to whole transactions in the durable log.
//!
//! The one danger: confirming a position that is not fsynced here (I1). Only `ledger` says what may be
//! confirmed.

mod assembler;
mod defect;
mod digest;
mod ledger;
mod message;
mod relations;
mod report;

pub use assembler::{Assembled, Assembler, Assembly, Ended, Whole};
pub use digest::{Summary, TransactionHasher, Truncate, Undigestible, relation_digest};
pub use ledger::Ledger;
pub use message::{Message, RelationMessage};
pub use report::{CaptureExit, CaptureProgress, CaptureReport};
