//! The source as capture sees it: facts before the stream, the stream, and what is confirmed to the slot.

use std::future::Future;

use trellara_storage::{Lsn, Timestamp};

use crate::capture::Message;
use crate::failure::Failure;

/// `pg_replication_slots.wal_status`, none on slots that never reserved WAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalStatus {
    Reserved,
    Extended,
    Unreserved,
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKind {
    Logical,
    Physical,
}

/// The slot of the flow's name as the source's catalog shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotFacts {
    pub kind: SlotKind,
    /// Output plugin; empty for a physical slot.
    pub plugin: String,
    /// The slot belongs to the database that the flow reads.
    pub same_database: bool,
    pub temporary: bool,
    pub two_phase: bool,
    /// None while the slot is still being made.
    pub confirmed: Option<Lsn>,
    pub restart: Option<Lsn>,
    pub wal_status: Option<WalStatus>,
    /// `invalidation_reason` (17+), `conflicting` (16); none where the version does not tell.
    pub invalidation: Option<String>,
    pub active_pid: Option<i32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicationFacts {
    pub name: String,
    pub oid: u32,
    /// Hexadecimal digest over tables, column lists, filters, operations and via-root.
    pub digest: String,
}

/// Everything that the lineage check reads, at one moment before the stream is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFacts {
    pub system_identifier: u64,
    pub timeline: u32,
    /// (timeline, its end) for each timeline before the current one, oldest first.
    pub timeline_history: Vec<(u32, Lsn)>,
    /// Flushed (primary) or replayed (standby) position of the server.
    pub position: Lsn,
    pub server_version: u32,
    /// `pg_encoding_to_char` of the database.
    pub encoding: String,
    pub slot: Option<SlotFacts>,
    pub publications: Vec<PublicationFacts>,
    /// Tables of the dataset that hold rows, quoted names; read only when no slot was made yet.
    pub tables_with_rows: Vec<String>,
    pub now: Timestamp,
}

/// What making the slot returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotOrigin {
    /// Every transaction with a commit LSN at or above this one will be sent.
    pub consistent_point: Lsn,
}

/// What arrives on an open stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    Message(Message),
    Keepalive { position: Lsn, reply_requested: bool },
}

/// One flow's source.
pub trait SourcePort: Send + Sync + 'static {
    type Stream: ReplicationStream;

    fn inspect(&self) -> impl Future<Output = Result<SourceFacts, Failure>> + Send;

    /// Makes the slot. Called only by the code that starts an incarnation (I8). No slot is left behind
    /// when it fails or is dropped.
    fn create_slot(&self) -> impl Future<Output = Result<SlotOrigin, Failure>> + Send;

    /// START_REPLICATION at 0/0: the slot's own position. Never makes a slot.
    fn open(&self) -> impl Future<Output = Result<Self::Stream, Failure>> + Send;
}

/// An open replication stream.
pub trait ReplicationStream: Send + 'static {
    /// Waits for at least one event, then appends everything that has already arrived, bounded.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    fn next(&mut self, events: &mut Vec<StreamEvent>) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Sends a status update that confirms exactly this position as written, flushed and applied.
    fn confirm(&mut self, position: Lsn) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Ends the stream in an orderly way, bounded in time.
    fn close(self) -> impl Future<Output = ()> + Send;
}
