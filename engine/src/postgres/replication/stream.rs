//! The open stream: frames in, status updates out.
//!
//! The one danger: a status update that says more than was asked for. [`CopyStream::confirm`] is the only
//! place that sets the position; questions to a silent server repeat the last one.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::{Buf, BufMut, Bytes};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;
use tokio::time::{Instant, timeout, timeout_at};
use trellara_storage::Lsn;

use super::channel::{Channel, Received, server_error};
use crate::postgres::error::Error;

/// Seconds from 1970 to PostgreSQL's epoch, 2000-01-01.
const POSTGRES_EPOCH: Duration = Duration::from_secs(946_684_800);

/// How long an orderly end may take; a server in the middle of a large transaction does not listen.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

/// One frame of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A pgoutput message. Frames carry positions too, but those of data are not positions that anything
    /// can be concluded from: they go backwards and are zero on some.
    Data(Bytes),
    Keepalive {
        position: Lsn,
        reply_requested: bool,
    },
}

#[derive(Debug)]
pub struct CopyStream {
    channel: Channel,
    idle_timeout: Duration,
    confirmed: Lsn,
    heard: Instant,
    /// When the silent server was asked to show that it lives.
    asked: Option<Instant>,
}

impl CopyStream {
    pub(super) fn new(channel: Channel, idle_timeout: Duration) -> Self {
        Self { channel, idle_timeout, confirmed: Lsn::ZERO, heard: Instant::now(), asked: None }
    }

    /// The next frame that has already arrived whole.
    ///
    /// # Errors
    /// The server's error, the end of the stream, or a malformed frame.
    pub fn take(&mut self) -> Result<Option<Frame>, Error> {
        loop {
            return match self.channel.buffered()? {
                None => Ok(None),
                Some(Received::CopyData(payload)) => frame(payload).map(Some),
                Some(Received::Other(Message::NoticeResponse(_) | Message::ParameterStatus(_))) => continue,
                Some(Received::Other(Message::ErrorResponse(body))) => Err(server_error(&body)),
                Some(Received::Other(Message::CopyDone | Message::CommandComplete(_))) => {
                    Err(Error::Lost(io::Error::other("the server ended the stream")))
                }
                Some(Received::Other(_) | Received::CopyBoth) => Err(Error::Protocol("message in a stream")),
            };
        }
    }

    /// Waits until more bytes have arrived. Half-way through `idle_timeout` of silence the server is asked
    /// to answer; without an answer in the other half the connection counts as dead.
    ///
    /// # Errors
    /// The connection is broken or dead.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing, and the silence goes on counting.
    pub async fn wait(&mut self) -> Result<(), Error> {
        let half = self.idle_timeout / 2;
        loop {
            let deadline = self.asked.unwrap_or(self.heard) + half;
            match timeout_at(deadline, self.channel.fill()).await {
                Ok(filled) => {
                    filled?;
                    self.heard = Instant::now();
                    self.asked = None;
                    return Ok(());
                }
                Err(_) if self.asked.is_some() => return Err(Error::TimedOut("anything on the stream")),
                Err(_) => {
                    self.asked = Some(Instant::now());
                    self.status(true).await?;
                }
            }
        }
    }

    /// Confirms exactly this position as written, flushed and applied.
    ///
    /// # Errors
    /// The connection is broken, or does not take the message in time.
    ///
    /// # Cancel safety
    /// A status update that was begun is completed by the next one.
    pub async fn confirm(&mut self, position: Lsn) -> Result<(), Error> {
        self.confirmed = position;
        self.status(false).await
    }

    /// Ends the stream: both sides say that they are done, then the connection closes. After five seconds
    /// it is closed regardless.
    pub async fn close(mut self) {
        // Nothing is left to decide: whatever goes wrong here, dropping the socket ends the stream as well.
        let _ = timeout(CLOSE_PATIENCE, self.end()).await;
    }

    async fn end(&mut self) -> Result<(), Error> {
        frontend::copy_done(&mut self.channel.write);
        self.channel.flush().await?;
        loop {
            match self.channel.receive().await? {
                Received::Other(Message::ReadyForQuery(_)) => break,
                Received::Other(_) | Received::CopyData(_) | Received::CopyBoth => {}
            }
        }
        frontend::terminate(&mut self.channel.write);
        self.channel.flush().await
    }

    async fn status(&mut self, reply_requested: bool) -> Result<(), Error> {
        const LENGTH: u32 = 4 + 1 + 4 * 8 + 1;
        let write = &mut self.channel.write;
        write.put_u8(b'd');
        write.put_u32(LENGTH);
        write.put_u8(b'r');
        for _written_flushed_applied in 0..3 {
            write.put_u64(self.confirmed.get());
        }
        write.put_i64(now());
        write.put_u8(reply_requested.into());
        timeout(self.idle_timeout, self.channel.flush())
            .await
            .map_err(|_| Error::TimedOut("room for a status update"))?
    }
}

/// Microseconds since PostgreSQL's epoch; the server only shows them.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH + POSTGRES_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

fn frame(mut payload: Bytes) -> Result<Frame, Error> {
    const DATA_HEADER: usize = 24;
    let malformed = || Error::Protocol("malformed frame");
    match payload.try_get_u8().map_err(|_| malformed())? {
        b'w' if payload.len() > DATA_HEADER => {
            payload.advance(DATA_HEADER);
            Ok(Frame::Data(payload))
        }
        b'k' => {
            let position = Lsn::new(payload.try_get_u64().map_err(|_| malformed())?);
            let _server_clock = payload.try_get_i64().map_err(|_| malformed())?;
            let reply_requested = payload.try_get_u8().map_err(|_| malformed())? != 0;
            if payload.has_remaining() {
                Err(malformed())
            } else {
                Ok(Frame::Keepalive { position, reply_requested })
            }
        }
        _ => Err(malformed()),
    }
}
