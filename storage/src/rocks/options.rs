//! Options of the database and of each family. Every figure that is not RocksDB's default has its reason.

use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DBCompressionType, DBRecoveryMode, LogLevel, Options,
    WriteBufferManager,
};

use crate::Family;

const MIB: usize = 1024 * 1024;
/// An idle family otherwise keeps old WAL alive, and reopening reads it (2.2 against 0.46 s).
const WAL_BYTES: u64 = 256 * 1024 * 1024;
/// Buffered chunk parts reach the disk while they are written, so that an fsync has little left to do.
const WAL_BYTES_PER_SYNC: u64 = 1024 * 1024;
const OPEN_FILES: i32 = 512;
/// 40,000 small range deletions make reads 6 ms instead of 0.008 ms: a memtable with this many is flushed.
pub(super) const RANGE_DELETIONS: (&str, &str) = ("memtable_max_range_deletions", "500");
/// Chunk parts are large and short-lived: compaction should not copy them.
const BLOB_FROM: u64 = 16 * 1024;
const BLOOM_BITS: f64 = 10.0;
const INFO_LOGS: usize = 4;

/// What the operator can set.
#[derive(Clone, Copy, Debug)]
pub struct RocksSettings {
    /// Block cache and write buffers together, in bytes.
    pub memory: usize,
}

impl Default for RocksSettings {
    fn default() -> Self {
        Self { memory: 512 * MIB }
    }
}

/// Whether a damaged log is refused or cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recovery {
    /// Damage inside is refused, a torn tail is dropped.
    Refuse,
    /// Everything behind the damage is dropped: asked for by `store recover` only.
    CutAtDamage,
}

pub(super) struct StoreOptions {
    pub(super) database: Options,
    cache: Cache,
    memory: usize,
}

impl StoreOptions {
    pub(super) fn new(settings: RocksSettings, recovery: Recovery) -> Self {
        let cache = Cache::new_lru_cache(settings.memory);
        let buffers = WriteBufferManager::new_write_buffer_manager_with_cache(
            settings.memory / 2,
            false,
            cache.clone(),
        );
        let mut database = Options::default();
        database.set_write_buffer_manager(&buffers);
        database.set_wal_recovery_mode(match recovery {
            Recovery::Refuse => DBRecoveryMode::TolerateCorruptedTailRecords,
            Recovery::CutAtDamage => DBRecoveryMode::PointInTime,
        });
        database.set_paranoid_checks(true);
        // Without it a lost file of the write-ahead log opens, its records silently missing.
        database.set_track_and_verify_wals_in_manifest(true);
        database.set_max_total_wal_size(WAL_BYTES);
        database.set_wal_bytes_per_sync(WAL_BYTES_PER_SYNC);
        database.set_bytes_per_sync(WAL_BYTES_PER_SYNC);
        database.set_max_open_files(OPEN_FILES);
        database.set_keep_log_file_num(INFO_LOGS);
        database.set_max_log_file_size(16 * MIB);
        database.set_log_level(LogLevel::Warn);
        Self { database, cache, memory: settings.memory }
    }

    pub(super) fn families(&self) -> Vec<ColumnFamilyDescriptor> {
        Family::ALL.map(|family| ColumnFamilyDescriptor::new(family.name(), self.family(family))).into()
    }

    pub(super) fn family(&self, family: Family) -> Options {
        let mut options = Options::default();
        options.set_block_based_table_factory(&self.table());
        options.set_compression_type(DBCompressionType::Lz4);
        options.set_write_buffer_size(self.write_buffer(family));
        if family == Family::Chunks {
            options.set_enable_blob_files(true);
            options.set_min_blob_size(BLOB_FROM);
            options.set_blob_compression_type(DBCompressionType::Lz4);
            options.set_enable_blob_gc(true);
        }
        options
    }

    fn table(&self) -> BlockBasedOptions {
        let mut table = BlockBasedOptions::default();
        table.set_block_cache(&self.cache);
        table.set_cache_index_and_filter_blocks(true);
        table.set_pin_l0_filter_and_index_blocks_in_cache(true);
        table.set_bloom_filter(BLOOM_BITS, false);
        table.set_format_version(5);
        table
    }

    /// The families that carry the stream get the room, the others little.
    fn write_buffer(&self, family: Family) -> usize {
        match family {
            Family::Log | Family::Chunks => (self.memory / 8).clamp(MIB, 64 * MIB),
            Family::Dedup | Family::Events => (self.memory / 32).clamp(MIB, 16 * MIB),
            Family::Default | Family::Flows | Family::Quarantine | Family::Relations | Family::Audit => {
                (self.memory / 64).clamp(MIB, 8 * MIB)
            }
        }
    }
}

/// The families whose content goes by ranges.
pub(super) const RANGE_DELETED: [Family; 5] =
    [Family::Log, Family::Chunks, Family::Dedup, Family::Relations, Family::Events];
