//! Shared by the tests of this crate and of those above it: the conformance suite that every store passes,
//! and records to fill a store with.

pub mod conformance;
mod flow;
mod records;

pub use flow::StoredFlow;
pub use records::{chunked, inline, lineage, quarantined};
