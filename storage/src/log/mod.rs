//! The one road to durability: the log writer thread, its permits and fair turns, and the readers.
//!
//! ```text
//! flow -> permit (bytes) -> channel -> writer thread: turns -> one synced batch -> receipts
//!                                   \-> reader threads: queries
//! ```
//! One fsync serves every flow that waited, and no flow's bytes delay another's beyond one capped batch
//! (I6). The one danger: completing a receipt before its fsync (I1).

mod audit;
pub mod budget;
mod handle;
pub mod keeper;
pub mod locate;
mod permits;
pub mod prune;
mod reader;
pub mod retention;
pub mod turns;
mod writer;

pub use audit::AuditTrail;
pub use handle::{FlowLogHandle, LogHandle, LogThreads, Receipt, start};
pub use writer::{WriterCounts, WriterState, WriterStats};

#[cfg(test)]
mod tests;
