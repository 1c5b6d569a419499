//! The in-memory twin of the store: same behaviour, no disk, and a crash that can be asked for.
//!
//! It is what everything above builds and tests on, and what the deterministic simulation crashes. It must
//! never be kinder than RocksDB: what was not synced may be lost, a failed sync leaves open what reached
//! the disk, and after it nothing is written any more.

mod image;
mod store;

pub use store::{Keep, MemoryStore};

#[cfg(test)]
mod tests;
