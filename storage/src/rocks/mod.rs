//! The store on RocksDB, one database in `data_dir`.
//!
//! Opening refuses, before it writes anything: another engine's store, an unknown format version, damage
//! inside the write-ahead log. A torn tail opens: it was never acknowledged. The one danger is a recovery
//! mode that opens with acknowledged records missing; point-in-time recovery, which RocksDB would use by
//! itself, does that after one flipped byte and is left to `recover`.

mod backup;
mod failure;
mod open;
mod options;
mod recover;
mod store;
mod tail;
mod usage;

pub use backup::Backup;
pub use options::RocksSettings;
pub use recover::Recovered;
pub use store::RocksStore;
pub use usage::FamilyUsage;
