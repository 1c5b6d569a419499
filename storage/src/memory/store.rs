//! `MemoryStore`: the store trait on an image, with the tail of the write-ahead log that a crash may take.
//!
//! ```text
//!   synced for certain          tail: written, not yet synced
//! | ........................ | batch | batch | batch |
//!                            ^ a crash keeps any prefix of the tail; a batch cut in the middle is dropped
//! ```

use std::ops::{Bound, ControlFlow};
use std::sync::{Mutex, MutexGuard};

use super::image::{Image, Undo};
use crate::store::{Order, Visitor};
use crate::{Batch, Durability, Error, Family, Store};

/// How much of what was not synced outlives a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Only what a successful sync covered.
    Synced,
    /// That, and this many bytes of the tail. A batch that is cut is torn and goes as a whole.
    Bytes(usize),
    /// The disk happened to get everything.
    Everything,
}

/// A store without a disk, with faults on demand.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    image: Image,
    tail: Vec<Undo>,
    faults: Faults,
}

#[derive(Debug, Default)]
struct Faults {
    disk_full: bool,
    fail_next_sync: bool,
    ignore_syncs: bool,
    /// A sync failed; nothing is written until the crash that has to follow.
    dead: bool,
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::default()
    }

    /// The process or the machine ends here. Afterwards the store is what opening it again would find, and
    /// no fault is pending; a full disk stays full.
    pub fn crash(&self, keep: Keep) {
        let mut state = self.state();
        let whole = surviving(&state.tail, keep);
        for undo in state.tail.split_off(whole).into_iter().rev() {
            state.image.undo(undo);
        }
        state.tail.clear();
        state.faults = Faults { disk_full: state.faults.disk_full, ..Faults::default() };
    }

    /// The next synced write fails: its batch and the tail before it may or may not be on disk, which the
    /// crash decides, and every later write fails too.
    pub fn fail_next_sync(&self) {
        self.state().faults.fail_next_sync = true;
    }

    /// From now on writes fail with `DiskFull`, until there is room again.
    pub fn set_disk_full(&self, full: bool) {
        self.state().faults.disk_full = full;
    }

    /// Plants a disk that lies: syncs report success and sync nothing. Shows that an oracle notices.
    pub fn ignore_syncs(&self) {
        self.state().faults.ignore_syncs = true;
    }

    /// Bytes that a crash could take.
    pub fn unsynced_bytes(&self) -> usize {
        self.state().tail.iter().map(|undo| undo.bytes).sum()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while the lock is held")
    }
}

impl Store for MemoryStore {
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.state().image.get(family, key).map(|value| value.to_vec()))
    }

    fn scan(
        &self,
        family: Family,
        from: &[u8],
        to: &[u8],
        order: Order,
        visit: &mut Visitor<'_>,
    ) -> Result<(), Error> {
        if from >= to {
            return Ok(());
        }
        let table = self.state().image.table(family);
        let mut range = table.range::<[u8], _>((Bound::Included(from), Bound::Excluded(to)));
        let mut next = || match order {
            Order::Ascending => range.next(),
            Order::Descending => range.next_back(),
        };
        while let Some((key, value)) = next() {
            if let ControlFlow::Break(()) = visit(key, value)? {
                break;
            }
        }
        Ok(())
    }

    fn apply(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        let mut state = self.state();
        if state.faults.dead {
            return Err(Error::WriteFailed("an earlier sync failed".to_owned()));
        }
        if state.faults.disk_full {
            return Err(Error::DiskFull);
        }
        let undo = state.image.apply(batch);
        state.tail.push(undo);
        match durability {
            Durability::Buffered => Ok(()),
            Durability::Synced => state.sync(),
        }
    }
}

impl State {
    fn sync(&mut self) -> Result<(), Error> {
        if self.faults.fail_next_sync {
            self.faults.dead = true;
            return Err(Error::WriteFailed("sync failed".to_owned()));
        }
        if !self.faults.ignore_syncs {
            self.tail.clear();
        }
        Ok(())
    }
}

/// How many batches of the tail are whole on disk.
fn surviving(tail: &[Undo], keep: Keep) -> usize {
    let mut room = match keep {
        Keep::Synced => return 0,
        Keep::Everything => return tail.len(),
        Keep::Bytes(bytes) => bytes,
    };
    let fits = |undo: &&Undo| match room.checked_sub(undo.bytes) {
        Some(rest) => {
            room = rest;
            true
        }
        None => false,
    };
    tail.iter().take_while(fits).count()
}
