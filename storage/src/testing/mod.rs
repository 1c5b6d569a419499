//! Shared by the tests of this crate and of those above it: the conformance suite that every store passes,
//! and records to fill a store with.

pub mod conformance;
mod records;

pub use records::{chunked, inline, lineage};
