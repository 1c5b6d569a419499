//! The contents of all families, and how to take a batch back.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::store::Entry;
use crate::{Batch, Family};

/// One family. Shared with running scans: a write copies it only while somebody still reads the old one.
pub(super) type Table = Arc<BTreeMap<Vec<u8>, Bytes>>;

/// Every family's contents.
#[derive(Debug, Default)]
pub(super) struct Image {
    tables: BTreeMap<Family, Table>,
}

/// What a batch replaced, in the order of replacement.
#[derive(Debug)]
pub(super) struct Undo {
    /// Bytes that the batch occupies at the tail of the write-ahead log.
    pub(super) bytes: usize,
    replaced: Vec<(Family, Vec<u8>, Option<Bytes>)>,
}

impl Image {
    pub(super) fn table(&self, family: Family) -> Table {
        self.tables.get(&family).cloned().unwrap_or_default()
    }

    pub(super) fn get(&self, family: Family, key: &[u8]) -> Option<&Bytes> {
        self.tables.get(&family)?.get(key)
    }

    pub(super) fn apply(&mut self, batch: &Batch) -> Undo {
        let mut replaced = Vec::with_capacity(batch.entries().len());
        for entry in batch.entries() {
            match entry {
                Entry::Put { family, key, value } => {
                    let old = self.set(*family, key, Some(Bytes::copy_from_slice(value)));
                    replaced.push((*family, key.clone(), old));
                }
                Entry::Delete { family, key } => {
                    let old = self.set(*family, key, None);
                    replaced.push((*family, key.clone(), old));
                }
                Entry::DeleteRange { family, from, to } if from < to => {
                    let keys: Vec<_> = self
                        .table(*family)
                        .range(from.clone()..to.clone())
                        .map(|(key, _)| key.clone())
                        .collect();
                    for key in keys {
                        let old = self.set(*family, &key, None);
                        replaced.push((*family, key, old));
                    }
                }
                Entry::DeleteRange { .. } => {}
            }
        }
        Undo { bytes: batch.bytes(), replaced }
    }

    pub(super) fn undo(&mut self, undo: Undo) {
        for (family, key, old) in undo.replaced.into_iter().rev() {
            self.set(family, &key, old);
        }
    }

    fn set(&mut self, family: Family, key: &[u8], value: Option<Bytes>) -> Option<Bytes> {
        let table = Arc::make_mut(self.tables.entry(family).or_default());
        match value {
            Some(value) => table.insert(key.to_vec(), value),
            None => table.remove(key),
        }
    }
}
