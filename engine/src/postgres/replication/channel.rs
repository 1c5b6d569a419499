//! Bytes to protocol messages and back over one socket.
//!
//! One read fetches whatever has arrived, many messages at a time; what was read and not yet taken stays in
//! the buffer, so that a dropped future loses nothing. Written bytes leave the buffer as the kernel takes
//! them, so that a dropped write goes on with the next one.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use postgres_protocol::message::backend::{COPY_DATA_TAG, ErrorResponseBody, Header, Message};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_postgres::fallible_iterator::FallibleIterator;

use crate::postgres::dial::Socket;
use crate::postgres::error::{Error, ServerError};

/// A quiet connection keeps a small buffer, since there may be thousands; a busy one grows to the large.
const SMALLEST_READ: usize = 8 * 1024;
const LARGEST_READ: usize = 256 * 1024;

/// CopyBothResponse, which `postgres-protocol` does not know.
const COPY_BOTH: u8 = b'W';
/// Tag and length; `Header` has checked that the length counts at least itself.
const HEADER: usize = 5;

/// PostgreSQL builds messages in buffers of at most 1 GiB. Whatever announces more is no PostgreSQL server,
/// and no memory is set aside for it.
const LONGEST: i32 = (1 << 30) + 1024;

/// One message of the server.
pub(super) enum Received {
    CopyBoth,
    CopyData(Bytes),
    Other(Message),
}

#[derive(Debug)]
pub(super) struct Channel {
    socket: Socket,
    read: BytesMut,
    read_size: usize,
    pub(super) write: BytesMut,
}

impl Channel {
    pub(super) fn new(socket: Socket) -> Self {
        Self { socket, read: BytesMut::new(), read_size: SMALLEST_READ, write: BytesMut::new() }
    }

    /// Waits for the next message. Notices and changed parameters pass through here like any other.
    pub(super) async fn receive(&mut self) -> Result<Received, Error> {
        loop {
            if let Some(message) = self.buffered()? {
                return Ok(message);
            }
            self.fill().await?;
        }
    }

    /// The next message that is already here.
    pub(super) fn buffered(&mut self) -> Result<Option<Received>, Error> {
        let malformed = |_| Error::Protocol("malformed message");
        let Some(header) = Header::parse(&self.read).map_err(malformed)? else { return Ok(None) };
        if header.len() > LONGEST {
            return Err(Error::Protocol("malformed message"));
        }
        if header.tag() != COPY_BOTH && header.tag() != COPY_DATA_TAG {
            return Ok(Message::parse(&mut self.read).map_err(malformed)?.map(Received::Other));
        }
        let length = usize::try_from(header.len()).map_err(|_| Error::Protocol("malformed message"))? + 1;
        if self.read.len() < length {
            self.read.reserve(length - self.read.len());
            return Ok(None);
        }
        let mut message = self.read.split_to(length).freeze();
        message.advance(HEADER);
        Ok(Some(if header.tag() == COPY_BOTH { Received::CopyBoth } else { Received::CopyData(message) }))
    }

    /// One read of whatever has arrived.
    pub(super) async fn fill(&mut self) -> Result<(), Error> {
        self.read.reserve(self.read_size);
        let size = self.socket.read_buf(&mut self.read).await?;
        if size == 0 {
            return Err(Error::Lost(io::ErrorKind::UnexpectedEof.into()));
        }
        if size >= self.read_size {
            self.read_size = (self.read_size * 2).min(LARGEST_READ);
        } else if size < self.read_size / 8 {
            self.read_size = (self.read_size / 2).max(SMALLEST_READ);
        }
        Ok(())
    }

    /// Sends everything that was put into `write`.
    pub(super) async fn flush(&mut self) -> Result<(), Error> {
        while self.write.has_remaining() {
            self.socket.write_buf(&mut self.write).await?;
        }
        Ok(self.socket.flush().await?)
    }
}

/// The server's own words. Text may be in any encoding, so it is made readable instead of being refused.
pub(super) fn server_error(body: &ErrorResponseBody) -> Error {
    let mut error = ServerError::default();
    let mut fields = body.fields();
    while let Ok(Some(field)) = fields.next() {
        let text = || String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'C' => error.sqlstate = text(),
            b'M' => error.message = text(),
            b'D' => error.detail = Some(text()),
            b'H' => error.hint = Some(text()),
            b'W' => error.context = Some(text()),
            b'F' => error.source_file = Some(text()),
            _ => {}
        }
    }
    Error::Server(Box::new(error))
}
