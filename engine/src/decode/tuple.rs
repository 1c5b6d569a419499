//! Bodies of changes as the log keeps them: what pgoutput sent after the relation OID, read without copying.
//!
//! Parsing checks a body whole, so that reading columns afterwards cannot fail.

use super::reader::{Malformed, Reader};

/// The rows of an insert, update or delete.
#[derive(Clone, Copy, Debug)]
pub enum ChangeBody<'a> {
    Insert {
        new: Tuple<'a>,
    },
    /// `before` is missing when no column of the replica identity changed (identity FULL always sends it).
    Update {
        before: Option<Before<'a>>,
        new: Tuple<'a>,
    },
    Delete {
        before: Before<'a>,
    },
}

/// The old row, as far as the source sends it.
#[derive(Clone, Copy, Debug)]
pub enum Before<'a> {
    /// `K`: only the columns of the replica identity hold values; the others are Null and mean nothing.
    Key(Tuple<'a>),
    /// `O`: the whole old row (replica identity FULL).
    Full(Tuple<'a>),
}

/// One row in the order of the relation's columns.
#[derive(Clone, Copy, Debug)]
pub struct Tuple<'a> {
    columns: u16,
    bytes: &'a [u8],
}

/// One column of a row, as PostgreSQL sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column<'a> {
    Null,
    /// A toasted value that the change did not touch; it was not sent.
    UnchangedToast,
    Text(&'a [u8]),
    Binary(&'a [u8]),
}

/// The columns of a row, in order.
#[derive(Clone, Debug)]
pub struct Columns<'a> {
    left: u16,
    reader: Reader<'a>,
}

impl<'a> ChangeBody<'a> {
    /// # Errors
    /// The bytes are not exactly one `N`.
    pub fn insert(body: &'a [u8]) -> Result<Self, Malformed> {
        Self::whole(body, |reader| Ok(Self::Insert { new: new_tuple(reader)? }))
    }

    /// # Errors
    /// The bytes are not exactly an optional `K` or `O` and one `N`.
    pub fn update(body: &'a [u8]) -> Result<Self, Malformed> {
        Self::whole(body, |reader| {
            let before = match reader.rest().first() {
                Some(b'N') => None,
                _ => Some(before(reader)?),
            };
            Ok(Self::Update { before, new: new_tuple(reader)? })
        })
    }

    /// # Errors
    /// The bytes are not exactly one `K` or `O`.
    pub fn delete(body: &'a [u8]) -> Result<Self, Malformed> {
        Self::whole(body, |reader| Ok(Self::Delete { before: before(reader)? }))
    }

    fn whole(
        body: &'a [u8],
        read: impl FnOnce(&mut Reader<'a>) -> Result<Self, Malformed>,
    ) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body);
        let change = read(&mut reader)?;
        reader.finish()?;
        Ok(change)
    }

    pub fn before(&self) -> Option<Before<'a>> {
        match self {
            Self::Insert { .. } => None,
            Self::Update { before, .. } => *before,
            Self::Delete { before } => Some(*before),
        }
    }

    pub fn new_row(&self) -> Option<Tuple<'a>> {
        match self {
            Self::Insert { new } | Self::Update { new, .. } => Some(*new),
            Self::Delete { .. } => None,
        }
    }
}

impl<'a> Before<'a> {
    pub fn tuple(&self) -> Tuple<'a> {
        match self {
            Self::Key(tuple) | Self::Full(tuple) => *tuple,
        }
    }
}

impl<'a> Tuple<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let columns = reader.u16("column count")?;
        let all = reader.rest();
        for _ in 0..columns {
            read_column(reader)?;
        }
        let bytes = all.get(..all.len() - reader.rest().len()).ok_or(Malformed("tuple"))?;
        Ok(Self { columns, bytes })
    }

    pub fn columns(&self) -> Columns<'a> {
        Columns { left: self.columns, reader: Reader::new(self.bytes) }
    }

    pub fn len(&self) -> usize {
        self.columns.into()
    }

    pub fn is_empty(&self) -> bool {
        self.columns == 0
    }
}

impl<'a> Iterator for Columns<'a> {
    type Item = Column<'a>;

    fn next(&mut self) -> Option<Column<'a>> {
        self.left = self.left.checked_sub(1)?;
        Some(read_column(&mut self.reader).expect("a tuple is checked when it is made"))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left.into(), Some(self.left.into()))
    }
}

impl ExactSizeIterator for Columns<'_> {}

fn new_tuple<'a>(reader: &mut Reader<'a>) -> Result<Tuple<'a>, Malformed> {
    match reader.u8("new row")? {
        b'N' => Tuple::read(reader),
        _ => Err(Malformed("new row")),
    }
}

fn before<'a>(reader: &mut Reader<'a>) -> Result<Before<'a>, Malformed> {
    match reader.u8("old row")? {
        b'K' => Tuple::read(reader).map(Before::Key),
        b'O' => Tuple::read(reader).map(Before::Full),
        _ => Err(Malformed("old row")),
    }
}

fn read_column<'a>(reader: &mut Reader<'a>) -> Result<Column<'a>, Malformed> {
    let kind = reader.u8("column kind")?;
    match kind {
        b'n' => Ok(Column::Null),
        b'u' => Ok(Column::UnchangedToast),
        b't' | b'b' => {
            let length = reader.length("column length")?;
            let value = reader.take(length, "column value")?;
            Ok(if kind == b't' { Column::Text(value) } else { Column::Binary(value) })
        }
        _ => Err(Malformed("column kind")),
    }
}

#[cfg(test)]
mod tests;
