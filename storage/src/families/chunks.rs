//! Parts of large or streamed transactions in arrival order. Key: flow, incarnation, capture session, xid, n.

use crate::codec::key::Key;
use crate::codec::value;
use crate::records::{ArchivedChangeBlock, ChangeBlock, PartRef};
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
        Key::history(self.flow, self.incarnation)
            .u32(self.session.get())
            .u32(self.xid.get())
            .u32(self.n)
            .bytes()
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
