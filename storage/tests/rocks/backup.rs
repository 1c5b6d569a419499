use std::os::unix::fs::MetadataExt;

use trellara_storage::{Error, RocksStore};

use super::{SETTINGS, file, holds, identity, open, write};

#[test]
fn a_store_backup_of_a_store_in_use_opens_and_holds_what_was_written_before() {
    let directory = tempfile::tempdir().unwrap();
    let (live, backup) = (directory.path().join("live"), directory.path().join("backup"));
    let store = open(&live);
    for n in 0..50 {
        write(&store, n);
    }
    let made = store.backup(&backup).unwrap();
    assert_eq!(made.identity, identity());
    assert!(made.bytes > 0);
    write(&store, 50);
    assert!(file(&backup, "sst").metadata().unwrap().nlink() > 1, "data files are hard links");
    let restored = open(&backup);
    assert!((0..50).all(|n| holds(&restored, n)));
    assert!(!holds(&restored, 50));
    write(&restored, 60);
    assert!(!holds(&store, 60), "the store backup is a store of its own");
}

#[test]
fn a_store_backup_never_writes_into_something_that_exists() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("live"));
    let refused = store.backup(directory.path()).unwrap_err();
    assert!(matches!(refused, Error::BackupFailed(_)), "{refused}");
    write(&store, 1);
    assert!(RocksStore::open_read_only(directory.path(), SETTINGS).is_err());
}
