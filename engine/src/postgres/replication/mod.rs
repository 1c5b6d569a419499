//! The replication transport: a thin asynchronous client of the streaming replication protocol.
//!
//! It never makes a slot by itself, confirms only what it is told, keeps no thread, and may be dropped at
//! any point. Why it exists: `docs/decisions/0001-replication-transport.md`.
//!
//! ```text
//! connection ── start-up, authentication ──> commands (IDENTIFY_SYSTEM, CREATE_REPLICATION_SLOT, ...)
//!      └── START_REPLICATION ──> stream ── frames, status updates ──> close, or dropped
//! ```

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library's message enum is open: what is not named where it is read is a protocol error"
)]

mod authenticate;
mod channel;
mod connection;
mod stream;

pub use connection::{CancelHandle, Connection, Row, StartOptions};
pub use stream::{CopyStream, Frame};
