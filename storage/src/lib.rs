//! What Trellara remembers: the durable log of received transactions, the dedup index, quarantine
//! evidence, flow progress, events and the audit trail.
//!
//! This crate owns every byte in `data_dir`. It knows neither PostgreSQL nor actors nor HTTP: bodies of
//! changes are opaque here. The one danger: a write reported durable that is not. Everything that must
//! survive goes through the one log writer (`log::writer`) and is acknowledged only after its fsync.

pub mod codec;
pub mod error;
pub mod families;
pub mod ids;
pub mod inspect;
pub mod log;
pub mod lsn;
pub mod memory;
pub mod records;
#[cfg(feature = "rocks")]
pub mod rocks;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;

pub use error::Error;
pub use families::Family;
pub use ids::{
    CaptureSession, FlowId, FlowName, Incarnation, InstanceId, RelationDigest, RelationId, RelationVersion,
    Timestamp, TransactionDigest, TransactionId, Xid,
};
pub use lsn::{Lsn, Progress};
pub use memory::MemoryStore;
#[cfg(feature = "rocks")]
pub use rocks::RocksStore;
pub use store::{Batch, Durability, Store};
