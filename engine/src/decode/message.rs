//! The messages of one stream, in order: protocol 1, and 2 with streamed transactions.
//!
//! Inside a streamed segment most messages carry a transaction id in front; whether one does can only be
//! known from the segment marks before it, so a decoder belongs to one connection and sees every message.

use std::collections::HashMap;

use bytes::Bytes;
use trellara_actors::capture::Message;
use trellara_storage::records::Operation;
use trellara_storage::{Lsn, RelationId, Timestamp, Xid};

use super::reader::{Malformed, Reader};
use super::relation;
use super::tuple::ChangeBody;

/// Microseconds from 1970 to PostgreSQL's epoch, 2000-01-01.
const POSTGRES_EPOCH_MICROS: i64 = 946_684_800_000_000;

/// Decoder of one connection's messages.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Between Stream Start and Stream Stop.
    in_segment: bool,
    /// Names of types that are not built in, by OID, as Type messages gave them; a relation message
    /// refers to those sent before it.
    types: HashMap<u32, (String, String)>,
}

impl Decoder {
    /// Decodes one message. None for a Type message, which belongs to the relation that follows.
    ///
    /// # Errors
    /// The message is not exactly what the protocol documents, stands where it cannot, or is of a kind that
    /// was not asked for. The stream cannot go on after that.
    pub fn decode(&mut self, message: &Bytes) -> Result<Option<Message>, Malformed> {
        let mut reader = Reader::new(message);
        let kind = reader.u8("message kind")?;
        let decoded = match kind {
            b'B' | b'C' | b'c' | b'A' => {
                self.expect_segment(false)?;
                between_segments(kind, &mut reader)?
            }
            b'S' => {
                self.expect_segment(false)?;
                self.in_segment = true;
                stream_start(&mut reader)?
            }
            b'E' => {
                self.expect_segment(true)?;
                self.in_segment = false;
                Message::StreamStop
            }
            b'O' => origin(&mut reader)?,
            b'Y' => {
                self.remember_type(&mut reader)?;
                reader.finish()?;
                return Ok(None);
            }
            b'R' => {
                let xid = self.xid(&mut reader)?;
                Message::Relation { xid, relation: relation::read(&mut reader, &self.types)? }
            }
            b'I' | b'U' | b'D' => {
                let xid = self.xid(&mut reader)?;
                return change(kind, xid, reader, message).map(Some);
            }
            b'T' => {
                let xid = self.xid(&mut reader)?;
                return truncate(xid, reader, message).map(Some);
            }
            b'M' => {
                let xid = self.xid(&mut reader)?;
                return logical(xid, reader, message).map(Some);
            }
            _ => return Err(Malformed("message kind")),
        };
        reader.finish()?;
        Ok(Some(decoded))
    }

    fn expect_segment(&self, inside: bool) -> Result<(), Malformed> {
        if self.in_segment == inside { Ok(()) } else { Err(Malformed("order of stream segments")) }
    }

    fn xid(&self, reader: &mut Reader<'_>) -> Result<Option<Xid>, Malformed> {
        if self.in_segment { xid(reader).map(Some) } else { Ok(None) }
    }

    fn remember_type(&mut self, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        self.xid(reader)?;
        let oid = reader.u32("type")?;
        let namespace = relation::name(reader, "namespace of a type")?;
        let name = relation::name(reader, "name of a type")?;
        self.types.insert(oid, (namespace, name));
        Ok(())
    }
}

fn between_segments(kind: u8, reader: &mut Reader<'_>) -> Result<Message, Malformed> {
    match kind {
        b'B' => {
            Ok(Message::Begin { final_lsn: lsn(reader)?, commit_time: timestamp(reader)?, xid: xid(reader)? })
        }
        b'C' => {
            no_flags(reader)?;
            Ok(Message::Commit {
                commit_lsn: lsn(reader)?,
                end_lsn: lsn(reader)?,
                commit_time: timestamp(reader)?,
            })
        }
        b'c' => {
            let xid = xid(reader)?;
            no_flags(reader)?;
            Ok(Message::StreamCommit {
                xid,
                commit_lsn: lsn(reader)?,
                end_lsn: lsn(reader)?,
                commit_time: timestamp(reader)?,
            })
        }
        _ => Ok(Message::StreamAbort { xid: xid(reader)?, sub_xid: xid(reader)? }),
    }
}

fn stream_start(reader: &mut Reader<'_>) -> Result<Message, Malformed> {
    let xid = xid(reader)?;
    match reader.u8("segment number")? {
        first @ (0 | 1) => Ok(Message::StreamStart { xid, first_segment: first == 1 }),
        _ => Err(Malformed("segment number")),
    }
}

fn origin(reader: &mut Reader<'_>) -> Result<Message, Malformed> {
    lsn(reader)?;
    let name = reader.string("origin name")?;
    Ok(Message::Origin { name: String::from_utf8_lossy(name).into_owned() })
}

/// An insert, update or delete. Like the two below, it keeps as its body everything after what has been read,
/// as sent and checked whole.
fn change(kind: u8, xid: Option<Xid>, mut reader: Reader<'_>, message: &Bytes) -> Result<Message, Malformed> {
    let relation = RelationId::new(reader.u32("relation")?);
    let body = remainder(message, reader);
    let (operation, checked) = match kind {
        b'I' => (Operation::Insert, ChangeBody::insert(&body)),
        b'U' => (Operation::Update, ChangeBody::update(&body)),
        _ => (Operation::Delete, ChangeBody::delete(&body)),
    };
    checked?;
    Ok(Message::Change { xid, operation, relation, body })
}

fn truncate(xid: Option<Xid>, mut reader: Reader<'_>, message: &Bytes) -> Result<Message, Malformed> {
    const CASCADE_OR_RESTART_IDENTITY: u8 = 3;
    let count = reader.length("relation count")?;
    let body = remainder(message, reader);
    if reader.u8("truncate options")? & !CASCADE_OR_RESTART_IDENTITY != 0 {
        return Err(Malformed("truncate options"));
    }
    let (oids, []) = reader.rest().as_chunks::<4>() else { return Err(Malformed("truncated relation")) };
    if oids.is_empty() || oids.len() != count {
        return Err(Malformed("relation count"));
    }
    let relations = oids.iter().map(|oid| RelationId::new(u32::from_be_bytes(*oid))).collect();
    Ok(Message::Truncate { xid, relations, body })
}

fn logical(xid: Option<Xid>, mut reader: Reader<'_>, message: &Bytes) -> Result<Message, Malformed> {
    let body = remainder(message, reader);
    let transactional = match reader.u8("message flags")? {
        flag @ (0 | 1) => flag == 1,
        _ => return Err(Malformed("message flags")),
    };
    let lsn = lsn(&mut reader)?;
    let prefix = String::from_utf8_lossy(reader.string("message prefix")?).into_owned();
    let length = reader.length("message length")?;
    reader.take(length, "message content")?;
    reader.finish()?;
    Ok(Message::Logical { xid, transactional, lsn, prefix, body })
}

/// What the reader has not read yet, sharing the message's memory.
fn remainder(message: &Bytes, reader: Reader<'_>) -> Bytes {
    message.slice_ref(reader.rest())
}

fn lsn(reader: &mut Reader<'_>) -> Result<Lsn, Malformed> {
    reader.u64("LSN").map(Lsn::new)
}

fn xid(reader: &mut Reader<'_>) -> Result<Xid, Malformed> {
    reader.u32("transaction id").map(Xid::new)
}

fn timestamp(reader: &mut Reader<'_>) -> Result<Timestamp, Malformed> {
    let micros = reader.i64("time")?.checked_add(POSTGRES_EPOCH_MICROS).ok_or(Malformed("time"))?;
    Ok(Timestamp::from_unix_micros(micros))
}

fn no_flags(reader: &mut Reader<'_>) -> Result<(), Malformed> {
    if reader.u8("flags")? == 0 { Ok(()) } else { Err(Malformed("flags")) }
}

#[cfg(test)]
mod tests;
