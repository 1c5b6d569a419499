//! Capture: from a replication stream to whole transactions in the durable log.
//!
//! The one danger: confirming a position that is not fsynced here (I1). Only `ledger` says what may be
//! confirmed.

mod message;
mod report;

pub use message::{Message, RelationMessage};
pub use report::{CaptureExit, CaptureProgress, CaptureReport};
