//! Settings and mappings for the unit tests of this folder.

#![expect(clippy::unwrap_used, reason = "a failed expectation in a test is a failed test")]

use std::sync::Arc;
use std::time::Duration;

use trellara_storage::records::{ColumnRecord, RelationRecord, ReplicaIdentity};
use trellara_storage::{Lsn, RelationDigest, RelationId, RelationVersion};

use crate::contract::{
    Mapping, TargetColumn, TargetObject, TargetTable, Triggers, UniqueIndex, ValueForm, check,
};
use crate::settings::{
    Password, RowPolicy, Server, TableName, TargetSettings, TlsMode, TlsSettings, TriggerPolicy,
};

pub(super) fn settings() -> TargetSettings {
    let tls = TlsSettings { mode: TlsMode::Disable, ca_file: None, certificate_file: None, key_file: None };
    TargetSettings {
        server: Server {
            host: "localhost".into(),
            port: 5432,
            database: "target".into(),
            user: "apply".into(),
            password: Password::None,
            tls,
            connect_timeout: Duration::from_secs(5),
        },
        schema: None,
        triggers_and_foreign_keys: TriggerPolicy::Skip,
        synchronous_commit: true,
        on_missing_row: RowPolicy::Quarantine,
        on_duplicate: RowPolicy::Quarantine,
        lock_timeout: Duration::from_secs(10),
        lease: Duration::from_secs(30),
        quarantine_unlisted_tables: false,
        pool_max: 4,
    }
}

/// Integer columns of the given names, `*` in front of those of the replica identity.
pub(super) fn relation(identity: ReplicaIdentity, columns: &[&str]) -> Arc<RelationRecord> {
    let column = |name: &&str| ColumnRecord {
        name: name.trim_start_matches('*').into(),
        type_oid: 23,
        type_modifier: -1,
        type_name: None,
        key: name.starts_with('*'),
    };
    Arc::new(RelationRecord {
        relation: RelationId::new(1),
        version: RelationVersion::new(1),
        digest: RelationDigest::default(),
        namespace: "app".into(),
        name: "t".into(),
        replica_identity: identity,
        columns: columns.iter().map(column).collect(),
        valid_from: Lsn::ZERO,
        encoding: "UTF8".into(),
    })
}

/// A table of integers with a unique index over each given set of columns (counted from 1).
pub(super) fn table(columns: &[&str], unique: &[&[i16]]) -> TargetTable {
    let column = |(at, name): (usize, &&str)| TargetColumn {
        name: (*name).into(),
        number: i16::try_from(at + 1).unwrap(),
        declared: "integer".into(),
        modifier: -1,
        base_oid: 23,
        base_name: "int4".into(),
        category: 'N',
        value: ValueForm {
            sql_type: "integer".into(),
            as_text: false,
            delimiter: ',',
            equality: Some("=".into()),
        },
        ..TargetColumn::default()
    };
    let index = |columns: &&[i16]| UniqueIndex {
        name: format!("index_{columns:?}"),
        columns: columns.to_vec(),
        usable: true,
        opaque: false,
    };
    TargetTable {
        name: TableName { schema: "app".into(), name: "t".into() },
        oid: 16_400,
        partitioned: false,
        columns: columns.iter().enumerate().map(column).collect(),
        indexes: unique.iter().map(index).collect(),
        deferrable: false,
        deferrable_keys: Vec::new(),
        triggers: Triggers::default(),
        digest: RelationDigest::default(),
    }
}

pub(super) fn mapping(relation: &Arc<RelationRecord>, table: TargetTable) -> Mapping {
    let name = table.name.clone();
    check(relation, &name, TargetObject::Table(Box::new(table))).unwrap()
}
