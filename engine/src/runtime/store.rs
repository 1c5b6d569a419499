//! Opens the store of this engine, or says plainly why it cannot.

use std::sync::Arc;

use trellara_actors::ports::Clock;
use trellara_storage::records::StoreIdentity;
use trellara_storage::rocks::RocksSettings;
use trellara_storage::{Error, InstanceId, RocksStore};

use super::clock::SystemClock;
use crate::config::Settings;

/// The store under `data_dir`, made on first use, and the instance that it belongs to.
///
/// # Errors
/// As `RocksStore::open`.
pub(super) fn open(
    settings: &Settings,
    clock: SystemClock,
) -> Result<(Arc<RocksStore>, StoreIdentity), Error> {
    let new = StoreIdentity { instance: InstanceId::new(rand::random()), created: clock.now() };
    let (store, identity) = RocksStore::open(&settings.data_dir, rocks_settings(settings), new)?;
    Ok((Arc::new(store), identity))
}

/// What the configuration says of RocksDB.
pub fn rocks_settings(settings: &Settings) -> RocksSettings {
    RocksSettings { memory: usize::try_from(settings.storage.memory).unwrap_or(usize::MAX) }
}
