//! One logged change against its mapping: which statement it takes, which values, and what it touches.

use std::borrow::Cow;
use std::sync::Arc;

use trellara_actors::failure::Code;
use trellara_storage::records::Operation;
use xxhash_rust::xxh3::Xxh3;

use super::mapped::Mapped;
use super::runs::Footprint;
use super::statement::{Form, Found, Image, Statement, is_fixed};
use crate::contract::Lookup;
use crate::decode::{Before, ChangeBody, Column, Malformed};

/// Why a change cannot become a statement. The text names things, never values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    pub(super) code: Code,
    pub(super) what: &'static str,
}

const DAMAGED: Misfit =
    Misfit { code: Code::RecordDamaged, what: "change does not fit its relation version" };
const NOT_SENT: Misfit = Misfit {
    code: Code::ValueNotSent,
    what: "a toasted value was not sent: set REPLICA IDENTITY FULL at the source and copy the table again",
};
const NO_IDENTITY: Misfit =
    Misfit { code: Code::ContractBroken, what: "update or delete of a relation without replica identity" };
const BINARY: Misfit =
    Misfit { code: Code::ColumnTypeMismatch, what: "binary value of a type that is only taken as text" };

/// A change on its way to the target.
#[derive(Debug)]
pub(super) struct Routed<'a> {
    pub(super) operation: Operation,
    pub(super) statement: Arc<Statement>,
    pub(super) footprint: Footprint,
    old: Option<Vec<Column<'a>>>,
    new: Option<Vec<Column<'a>>>,
}

impl<'a> Routed<'a> {
    /// Values of the statement's parameters, in order.
    pub(super) fn values(
        &self,
        mapped: &Mapped,
        mut push: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Misfit> {
        for (n, input) in self.statement.inputs.iter().enumerate() {
            let oid = mapped.mapping.relation.columns[input.column].type_oid;
            let value = value(self.column(input.image, input.column)?, oid)?;
            push(n, value.as_deref());
        }
        Ok(())
    }

    /// The same row in another statement.
    pub(super) fn with(&self, statement: Arc<Statement>) -> Routed<'a> {
        Routed {
            operation: self.operation,
            statement,
            footprint: self.footprint,
            old: self.old.clone(),
            new: self.new.clone(),
        }
    }

    /// A value of the new row that was sent.
    pub(super) fn new_value(&self, at: usize) -> Option<Column<'a>> {
        self.new.as_ref().map(|new| new[at]).filter(|column| *column != Column::UnchangedToast)
    }

    fn column(&self, image: Image, at: usize) -> Result<Column<'a>, Misfit> {
        let row = match image {
            Image::Old => self.old.as_ref().or(self.new.as_ref()),
            Image::New => self.new.as_ref(),
        };
        row.map(|row| row[at]).ok_or(DAMAGED)
    }
}

/// Reads the change and picks its statement. `tolerant`: an insert of a row that exists is not an error.
pub(super) fn route<'a>(
    mapped: &Arc<Mapped>,
    operation: Operation,
    body: &'a [u8],
    tolerant: bool,
) -> Result<Routed<'a>, Misfit> {
    let body = parse(operation, body)?;
    let columns = mapped.mapping.relation.columns.len();
    let read = |tuple: crate::decode::Tuple<'a>| -> Result<Vec<Column<'a>>, Misfit> {
        if tuple.len() == columns { Ok(tuple.columns().collect()) } else { Err(DAMAGED) }
    };
    let before = body.before();
    let full = matches!(before, Some(Before::Full(_)));
    let old = before.map(|before| read(before.tuple())).transpose()?;
    let new = body.new_row().map(read).transpose()?;
    let rows = Rows { mapped, old: old.as_deref(), new: new.as_deref(), full };
    let (statement, alone) = match operation {
        // A row without columns has no arrays that could hold more than one.
        Operation::Insert => (rows.insert(tolerant)?, columns == 0),
        Operation::Update => rows.update()?,
        Operation::Delete => rows.delete()?,
        Operation::Truncate | Operation::Message => return Err(DAMAGED),
    };
    let footprint = Footprint {
        table: mapped.mapping.table.oid,
        mapping: Arc::as_ptr(mapped) as usize,
        form: Arc::as_ptr(&statement) as usize,
        row: rows.row()?,
        alone,
        free: mapped.free,
        tied: mapped.tied,
    };
    Ok(Routed { operation, statement, footprint, old, new })
}

pub(super) fn parse(operation: Operation, body: &[u8]) -> Result<ChangeBody<'_>, Misfit> {
    let parsed = match operation {
        Operation::Insert => ChangeBody::insert(body),
        Operation::Update => ChangeBody::update(body),
        Operation::Delete => ChangeBody::delete(body),
        Operation::Truncate | Operation::Message => return Err(DAMAGED),
    };
    parsed.map_err(|_: Malformed| DAMAGED)
}

/// The row images of one change.
struct Rows<'r, 'a> {
    mapped: &'r Mapped,
    old: Option<&'r [Column<'a>]>,
    new: Option<&'r [Column<'a>]>,
    /// The old image is whole.
    full: bool,
}

impl Rows<'_, '_> {
    fn insert(&self, tolerant: bool) -> Result<Arc<Statement>, Misfit> {
        let new = self.new.ok_or(DAMAGED)?;
        if new.contains(&Column::UnchangedToast) {
            return Err(NOT_SENT);
        }
        Ok(self.mapped.insert(tolerant))
    }

    fn update(&self) -> Result<(Arc<Statement>, bool), Misfit> {
        let set = self.assigned()?;
        let fixed = set.iter().any(|at| is_fixed(self.target(*at)));
        let renamed = self.keys().iter().any(|at| set.contains(at));
        let keyed = matches!(self.mapped.mapping.lookup, Lookup::Key(_));
        if keyed && !fixed && !renamed {
            let alone = self.touches_other_index(&set);
            return Ok((self.mapped.statement(&Form::Update { set }), alone));
        }
        let found = self.found()?;
        let form = if fixed { Form::Move { set, found } } else { Form::UpdateOne { set, found } };
        Ok((self.mapped.statement(&form), true))
    }

    fn delete(&self) -> Result<(Arc<Statement>, bool), Misfit> {
        match self.mapped.mapping.lookup {
            Lookup::Key(_) => Ok((self.mapped.statement(&Form::Delete), false)),
            Lookup::WholeRow | Lookup::Never => {
                let found = self.found()?;
                Ok((self.mapped.statement(&Form::DeleteOne { found }), true))
            }
        }
    }

    /// Columns to write: what was sent, without a key that stays, and without fixed columns known to stay.
    fn assigned(&self) -> Result<Vec<usize>, Misfit> {
        let new = self.new.ok_or(DAMAGED)?;
        let keys = self.keys();
        let written = |at: &usize| {
            let sent = new[*at] != Column::UnchangedToast;
            let stays = self.old.is_some_and(|old| old[*at] == new[*at]);
            if keys.contains(at) {
                // Without an old image the source says that the key stayed.
                sent && self.old.is_some() && !stays
            } else {
                sent && !(is_fixed(self.target(*at)) && self.full && stays)
            }
        };
        Ok((0..new.len()).filter(written).collect())
    }

    /// Columns to find the one row by, with the pattern of its NULLs.
    fn found(&self) -> Result<Found, Misfit> {
        match &self.mapped.mapping.lookup {
            Lookup::Key(keys) => Ok(Found { equal: keys.clone(), null: Vec::new(), one_of_many: false }),
            Lookup::Never => Err(NO_IDENTITY),
            Lookup::WholeRow => {
                let old = self.old.filter(|_| self.full).ok_or(DAMAGED)?;
                if old.contains(&Column::UnchangedToast) {
                    return Err(NOT_SENT);
                }
                let (null, equal) = (0..old.len()).partition(|at| old[*at] == Column::Null);
                Ok(Found { equal, null, one_of_many: true })
            }
        }
    }

    /// Whether a written column belongs to a unique or exclusion index that rows are not found by.
    fn touches_other_index(&self, set: &[usize]) -> bool {
        let changed = |at: &usize| {
            !(self.full && self.old.zip(self.new).is_some_and(|(old, new)| old[*at] == new[*at]))
        };
        let written: Vec<i16> =
            set.iter().filter(|at| changed(at)).map(|at| self.target(*at).number).collect();
        self.mapped
            .other_indexes()
            .any(|index| index.opaque || index.columns.iter().any(|number| written.contains(number)))
    }

    /// A name of the row by its key: the old one, which is the new one unless the key changes.
    fn row(&self) -> Result<Option<u64>, Misfit> {
        let Lookup::Key(keys) = &self.mapped.mapping.lookup else { return Ok(None) };
        let row = self.old.or(self.new).ok_or(DAMAGED)?;
        let mut hasher = Xxh3::new();
        for at in keys {
            let value: &[u8] = match row[*at] {
                Column::Null => b"",
                Column::UnchangedToast => return Err(NOT_SENT),
                Column::Text(value) | Column::Binary(value) => value,
            };
            hasher.update(&(value.len() as u64).to_le_bytes());
            hasher.update(value);
        }
        Ok(Some(hasher.digest()))
    }

    fn keys(&self) -> &[usize] {
        match &self.mapped.mapping.lookup {
            Lookup::Key(keys) => keys,
            Lookup::WholeRow | Lookup::Never => &[],
        }
    }

    fn target(&self, at: usize) -> &crate::contract::TargetColumn {
        self.mapped.target(at)
    }
}

/// The text that goes into an array. Binary values of the plain scalar types are written out.
pub(super) fn value(column: Column<'_>, type_oid: u32) -> Result<Option<Cow<'_, [u8]>>, Misfit> {
    match column {
        Column::Null => Ok(None),
        Column::UnchangedToast => Err(NOT_SENT),
        Column::Text(text) => Ok(Some(Cow::Borrowed(text))),
        Column::Binary(bytes) => binary_as_text(bytes, type_oid).map(Some).ok_or(BINARY),
    }
}

fn binary_as_text(bytes: &[u8], type_oid: u32) -> Option<Cow<'_, [u8]>> {
    use postgres_types::Type;
    let owned = |text: String| Some(Cow::Owned(text.into_bytes()));
    match Type::from_oid(type_oid)? {
        Type::BYTEA => owned(bytes.iter().fold("\\x".to_owned(), |mut text, byte| {
            use std::fmt::Write;
            write!(text, "{byte:02x}").expect("writing to a String");
            text
        })),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::JSON | Type::XML => {
            Some(Cow::Borrowed(bytes))
        }
        Type::BOOL => owned((bytes == [1]).to_string()),
        Type::INT2 => owned(i16::from_be_bytes(bytes.try_into().ok()?).to_string()),
        Type::INT4 => owned(i32::from_be_bytes(bytes.try_into().ok()?).to_string()),
        Type::INT8 => owned(i64::from_be_bytes(bytes.try_into().ok()?).to_string()),
        _ => None,
    }
}
