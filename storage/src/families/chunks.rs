//! Parts of large or streamed transactions in arrival order. Key: flow, incarnation, capture session, xid, n.

//!
//! A transaction whose parts are being written, and which has no manifest yet, has an *open mark*: an empty
//! value under session 0 and its xid, with its session in place of n. It is written with the first part and
//! deleted with the manifest or with the parts, so what a dead connection left behind is found without
//! reading the log. Sessions count from 1.

use std::ops::ControlFlow;

use crate::codec::key::{Key, read_u32};
use crate::codec::value;
use crate::records::{ArchivedChangeBlock, ChangeBlock, PartRef};
use crate::store::Order;
use crate::{Batch, CaptureSession, Error, Family, FlowId, Incarnation, Store, Xid};

/// Names one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartKey {
    pub flow: FlowId,
    pub incarnation: Incarnation,
    pub session: CaptureSession,
    pub xid: Xid,
    pub n: u32,
}

impl PartKey {
    pub fn bytes(self) -> Vec<u8> {
        self.transaction().u32(self.n).bytes()
    }

    fn transaction(self) -> Key {
        Key::history(self.flow, self.incarnation).u32(self.session.get()).u32(self.xid.get())
    }

    fn mark(self) -> Vec<u8> {
        Key::history(self.flow, self.incarnation).u32(0).u32(self.xid.get()).u32(self.session.get()).bytes()
    }
}

/// One verified part, read in place.
#[derive(Clone, Debug)]
pub struct Part(Vec<u8>);

impl Part {
    /// # Panics
    /// Never: validated when read.
    pub fn block(&self) -> &ArchivedChangeBlock {
        let payload = value::open_archived(&self.0).expect("verified when read");
        rkyv::access::<ArchivedChangeBlock, rkyv::rancor::Error>(payload).expect("validated when read")
    }
}

/// Puts a part and returns what its manifest pins.
///
/// # Panics
/// When the block is larger than 4 GiB: parts end at 256 KiB.
pub fn put(batch: &mut Batch, key: PartKey, block: &ChangeBlock) -> PartRef {
    let payload = rkyv::to_bytes::<rkyv::rancor::Error>(block).expect("archiving into memory");
    let reference = PartRef {
        hash: xxhash_rust::xxh3::xxh3_128(&payload).to_be_bytes(),
        changes: u32::try_from(block.heads.len()).expect("a part holds fewer than 2^32 changes"),
        bytes: u32::try_from(block.body.len()).expect("a part is smaller than 4 GiB"),
    };
    batch.put(Family::Chunks, key.bytes(), value::seal_archived(&payload));
    reference
}

/// Reads the part that a manifest names.
///
/// # Errors
/// `Corruption` when it is missing, damaged, or not the one that was pinned.
pub fn get(store: &dyn Store, key: PartKey, pinned: &PartRef) -> Result<Part, Error> {
    let bytes = key.bytes();
    let damage = |what: &dyn std::fmt::Display| super::damaged(Family::Chunks, Some(key.flow), &bytes, what);
    let value = store.get(Family::Chunks, &bytes)?.ok_or_else(|| damage(&"the part is missing"))?;
    let payload = value::open_archived(&value).map_err(|error| damage(&error))?;
    if xxhash_rust::xxh3::xxh3_128(payload).to_be_bytes() != pinned.hash {
        return Err(damage(&"the part is not the one that its manifest pins"));
    }
    rkyv::access::<ArchivedChangeBlock, rkyv::rancor::Error>(payload).map_err(|error| damage(&error))?;
    Ok(Part(value))
}

/// Marks the transaction of `first` (its part 0) as open.
pub fn mark_open(batch: &mut Batch, first: PartKey) {
    batch.put(Family::Chunks, first.mark(), Vec::new());
}

/// Takes the open mark of the transaction back.
pub fn close(batch: &mut Batch, first: PartKey) {
    batch.delete(Family::Chunks, first.mark());
}

/// Part 0 of every transaction that is marked open, oldest xid first.
///
/// # Errors
/// `ReadFailed`, `Corruption`.
pub fn open(store: &dyn Store, flow: FlowId, incarnation: Incarnation) -> Result<Vec<PartKey>, Error> {
    let (from, to) = Key::history(flow, incarnation).u32(0).range();
    let mut found = Vec::new();
    store.scan(Family::Chunks, &from, &to, Order::Ascending, &mut |key, _| {
        let number = |at| {
            read_u32(key, at)
                .ok_or_else(|| super::damaged(Family::Chunks, Some(flow), key, &"key is too short"))
        };
        let (xid, session) = (Xid::new(number(12)?), CaptureSession::new(number(16)?));
        found.push(PartKey { flow, incarnation, session, xid, n: 0 });
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// Deletes every part of the transaction and its open mark.
///
/// # Errors
/// `ReadFailed`.
pub fn sweep(batch: &mut Batch, store: &dyn Store, first: PartKey) -> Result<(), Error> {
    let (from, to) = first.transaction().range();
    store.scan(Family::Chunks, &from, &to, Order::Ascending, &mut |key, _| {
        batch.delete(Family::Chunks, key.to_vec());
        Ok(ControlFlow::Continue(()))
    })?;
    close(batch, first);
    Ok(())
}
