//! Big-endian keys.

use crate::{FlowId, Incarnation};

/// Builds one key, part by part.
#[derive(Debug, Default)]
pub struct Key(Vec<u8>);

impl Key {
    pub fn new() -> Self {
        Self(Vec::with_capacity(24))
    }

    /// A key that begins with a name instead of a number.
    pub fn named(name: &[u8]) -> Self {
        Self(name.to_vec())
    }

    /// The common beginning of everything that belongs to a flow.
    pub fn flow(flow: FlowId) -> Self {
        Self::new().u32(flow.get())
    }

    /// The common beginning of everything that belongs to one history of a flow.
    pub fn history(flow: FlowId, incarnation: Incarnation) -> Self {
        Self::flow(flow).u32(incarnation.get())
    }

    #[must_use]
    pub fn u8(mut self, part: u8) -> Self {
        self.0.push(part);
        self
    }

    #[must_use]
    pub fn u32(mut self, part: u32) -> Self {
        self.0.extend_from_slice(&part.to_be_bytes());
        self
    }

    #[must_use]
    pub fn u64(mut self, part: u64) -> Self {
        self.0.extend_from_slice(&part.to_be_bytes());
        self
    }

    pub fn bytes(self) -> Vec<u8> {
        self.0
    }

    /// `[from, to)` over every key that begins with this one.
    pub fn range(self) -> (Vec<u8>, Vec<u8>) {
        let from = self.0;
        let to = successor(&from);
        (from, to)
    }
}

/// The first key behind every key that begins with `prefix`.
///
/// # Panics
/// When every byte of the prefix is 0xFF: no family has such keys, numbers start low and grow.
fn successor(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return end;
        }
    }
    panic!("no key prefix is all ones")
}

/// Reads a big-endian u32 at `at`, none when the key is shorter.
pub fn read_u32(key: &[u8], at: usize) -> Option<u32> {
    key.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

/// Reads a big-endian u64 at `at`, none when the key is shorter.
pub fn read_u64(key: &[u8], at: usize) -> Option<u64> {
    key.get(at..at + 8)?.try_into().ok().map(u64::from_be_bytes)
}
