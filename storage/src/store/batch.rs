//! One crash-consistent unit of writes.

use crate::Family;

/// One write of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    Put {
        family: Family,
        key: Vec<u8>,
        value: Vec<u8>,
    },
    Delete {
        family: Family,
        key: Vec<u8>,
    },
    /// `[from, to)`; for whole flows and incarnations only, see the retention keeper.
    DeleteRange {
        family: Family,
        from: Vec<u8>,
        to: Vec<u8>,
    },
}

/// Writes that become visible and durable together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    entries: Vec<Entry>,
    bytes: usize,
}

impl Batch {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn put(&mut self, family: Family, key: Vec<u8>, value: Vec<u8>) {
        self.bytes += key.len() + value.len();
        self.entries.push(Entry::Put { family, key, value });
    }

    pub fn delete(&mut self, family: Family, key: Vec<u8>) {
        self.bytes += key.len();
        self.entries.push(Entry::Delete { family, key });
    }

    pub fn delete_range(&mut self, family: Family, from: Vec<u8>, to: Vec<u8>) {
        self.bytes += from.len() + to.len();
        self.entries.push(Entry::DeleteRange { family, from, to });
    }

    /// Adds everything of `other` behind what is here.
    pub fn append(&mut self, mut other: Batch) {
        self.bytes += other.bytes;
        self.entries.append(&mut other.entries);
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    /// Bytes of keys and values: what budgets and permits count.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
