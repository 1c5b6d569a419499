//! Relation messages: a table's name, columns and replica identity as the source describes them.

use std::collections::HashMap;

use trellara_actors::capture::RelationMessage;
use trellara_storage::RelationId;
use trellara_storage::records::{ColumnRecord, ReplicaIdentity};

use super::reader::{Malformed, Reader};

/// Column flag: part of the replica identity.
const KEY: u8 = 1;

/// Reads what follows the transaction id.
pub(super) fn read(
    reader: &mut Reader<'_>,
    types: &HashMap<u32, (String, String)>,
) -> Result<RelationMessage, Malformed> {
    let relation = RelationId::new(reader.u32("relation")?);
    let namespace = match name(reader, "namespace of a relation")? {
        // How pgoutput abbreviates the one schema that every database has.
        empty if empty.is_empty() => "pg_catalog".to_owned(),
        namespace => namespace,
    };
    let name = name(reader, "name of a relation")?;
    let replica_identity = match reader.u8("replica identity")? {
        b'd' => ReplicaIdentity::Default,
        b'n' => ReplicaIdentity::Nothing,
        b'f' => ReplicaIdentity::Full,
        b'i' => ReplicaIdentity::Index,
        _ => return Err(Malformed("replica identity")),
    };
    let count = reader.u16("column count")?;
    let columns = (0..count).map(|_| column(reader, types)).collect::<Result<_, _>>()?;
    Ok(RelationMessage { relation, namespace, name, replica_identity, columns })
}

/// Names become text here, so they must be UTF-8; guessing could make two names one.
pub(super) fn name(reader: &mut Reader<'_>, what: &'static str) -> Result<String, Malformed> {
    let bytes = reader.string(what)?;
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Malformed(what))
}

fn column(
    reader: &mut Reader<'_>,
    types: &HashMap<u32, (String, String)>,
) -> Result<ColumnRecord, Malformed> {
    let key = match reader.u8("column flags")? {
        0 => false,
        KEY => true,
        _ => return Err(Malformed("column flags")),
    };
    let name = name(reader, "column name")?;
    let type_oid = reader.u32("column type")?;
    let type_modifier = reader.i32("type modifier")?;
    let type_name = types.get(&type_oid).cloned();
    Ok(ColumnRecord { name, type_oid, type_modifier, type_name, key })
}
