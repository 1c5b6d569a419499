//! A replication connection before it streams: commands and plain SQL through the simple query protocol.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use postgres_protocol::message::backend::{DataRowBody, Message};
use postgres_protocol::message::frontend;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use tokio_postgres::fallible_iterator::FallibleIterator;

use super::authenticate::{Greeting, start_up, unwritable};
use super::channel::{Channel, Received, server_error};
use super::stream::CopyStream;
use crate::postgres::dial::dial;
use crate::postgres::error::Error;
use crate::postgres::session::{
    PINNED_SINCE_17, Session, VERSION_17, read_password, start_up_options, version_number,
};
use crate::settings::Server;

/// An open connection of `replication=database`.
#[derive(Debug)]
pub struct Connection {
    channel: Channel,
    server: Server,
    greeting: Greeting,
    version: u32,
}

/// Asks the server to give up what a connection is doing, over a connection of its own.
#[derive(Clone, Debug)]
pub struct CancelHandle {
    server: Server,
    process_id: i32,
    secret_key: i32,
}

/// One row of an answer; the simple query protocol sends text only.
#[derive(Clone, Debug)]
pub struct Row(Vec<Option<Bytes>>);

/// What START_REPLICATION asks pgoutput for. Never `two_phase`: one such start flips the slot for good.
#[derive(Clone, Copy, Debug)]
pub struct StartOptions<'a> {
    pub slot: &'a str,
    pub publications: &'a [String],
    /// Transactions in progress are sent before they end (protocol 2).
    pub streaming: bool,
    pub binary: bool,
    /// A connection that was silent for this long is dead.
    pub idle_timeout: Duration,
}

impl Connection {
    /// Connects within `server.connect_timeout`. Text arrives in the source's own encoding.
    ///
    /// # Errors
    /// Whatever keeps the connection from being ready for its first command.
    ///
    /// # Cancel safety
    /// Dropping the future closes the socket.
    pub async fn open(
        server: &Server,
        session: &Session,
        wal_sender_timeout: Duration,
    ) -> Result<Self, Error> {
        let opening = Box::pin(Self::open_unbounded(server, session, wal_sender_timeout));
        timeout(server.connect_timeout, opening)
            .await
            .map_err(|_| Error::TimedOut("replication connection"))?
    }

    async fn open_unbounded(
        server: &Server,
        session: &Session,
        wal_sender_timeout: Duration,
    ) -> Result<Self, Error> {
        let password = read_password(server).await?;
        let mut channel = Channel::new(dial(server).await?);
        let wal_sender_timeout = ("wal_sender_timeout", wal_sender_timeout.as_millis().to_string());
        let options = start_up_options(session, &[wal_sender_timeout]);
        let parameters = [
            ("user", server.user.as_str()),
            ("database", server.database.as_str()),
            ("replication", "database"),
            ("application_name", session.application_name.as_str()),
            ("options", options.as_str()),
        ];
        let greeting = start_up(&mut channel, &parameters, &server.user, password.as_ref()).await?;
        let version = greeting.parameters.get("server_version").and_then(|text| version_number(text));
        let version = version.ok_or(Error::Protocol("server version"))?;
        let mut connection = Self { channel, server: server.clone(), greeting, version };
        connection.finish_session().await?;
        Ok(connection)
    }

    /// What start-up parameters cannot pin.
    async fn finish_session(&mut self) -> Result<(), Error> {
        if self.version >= VERSION_17 {
            self.command(PINNED_SINCE_17).await?;
        }
        let parameters = &self.greeting.parameters;
        let encoding = parameters.get("server_encoding").ok_or(Error::Protocol("server encoding"))?;
        if parameters.get("client_encoding") != Some(encoding) {
            let set = format!("SET client_encoding = '{encoding}'");
            self.command(&set).await?;
        }
        Ok(())
    }

    /// The server's version as PostgreSQL numbers it, for instance 150018.
    pub fn server_version(&self) -> u32 {
        self.version
    }

    /// Encoding of the database, and of all text that the stream sends.
    pub fn encoding(&self) -> &str {
        self.greeting.parameters.get("server_encoding").map_or("", String::as_str)
    }

    pub fn cancel_handle(&self) -> CancelHandle {
        CancelHandle {
            server: self.server.clone(),
            process_id: self.greeting.process_id,
            secret_key: self.greeting.secret_key,
        }
    }

    /// Sends one command or SQL statement and returns its rows.
    ///
    /// # Errors
    /// The server's refusal, after which the connection is ready again; or a broken connection.
    pub async fn command(&mut self, text: &str) -> Result<Vec<Row>, Error> {
        frontend::query(text, &mut self.channel.write).map_err(unwritable)?;
        self.channel.flush().await?;
        let mut rows = Vec::new();
        let mut refused = None;
        loop {
            let message = match self.channel.receive().await {
                Ok(Received::Other(message)) => message,
                Ok(Received::CopyBoth | Received::CopyData(_)) => {
                    return Err(Error::Protocol("copy data as answer to a command"));
                }
                // After a fatal error the server closes; what it said counts.
                Err(lost) => return Err(refused.unwrap_or(lost)),
            };
            match message {
                Message::DataRow(body) => rows.push(Row::read(&body)?),
                Message::ErrorResponse(body) => refused = Some(server_error(&body)),
                Message::ReadyForQuery(_) => return refused.map_or(Ok(rows), Err),
                Message::RowDescription(_)
                | Message::CommandComplete(_)
                | Message::EmptyQueryResponse
                | Message::NoticeResponse(_)
                | Message::ParameterStatus(_) => {}
                _ => return Err(Error::Protocol("message as answer to a command")),
            }
        }
    }

    /// START_REPLICATION at 0/0, the slot's own position. A missing slot is an error.
    ///
    /// # Errors
    /// The server's refusal, or a broken connection.
    pub async fn start(mut self, options: &StartOptions<'_>) -> Result<CopyStream, Error> {
        frontend::query(&options.command(), &mut self.channel.write).map_err(unwritable)?;
        self.channel.flush().await?;
        loop {
            match self.channel.receive().await? {
                Received::CopyBoth => return Ok(CopyStream::new(self.channel, options.idle_timeout)),
                Received::Other(Message::ErrorResponse(body)) => return Err(server_error(&body)),
                Received::Other(Message::NoticeResponse(_) | Message::ParameterStatus(_)) => {}
                Received::Other(_) | Received::CopyData(_) => {
                    return Err(Error::Protocol("answer to START_REPLICATION"));
                }
            }
        }
    }
}

impl CancelHandle {
    /// Sends the request; the server answers it by closing.
    ///
    /// # Errors
    /// The request could not be delivered in time.
    pub async fn cancel(&self) -> Result<(), Error> {
        let request = async {
            let mut socket = dial(&self.server).await?;
            let mut bytes = BytesMut::new();
            frontend::cancel_request(self.process_id, self.secret_key, &mut bytes);
            socket.write_all(&bytes).await?;
            Ok(socket.shutdown().await?)
        };
        timeout(self.server.connect_timeout, request).await.map_err(|_| Error::TimedOut("cancel request"))?
    }
}

impl Row {
    fn read(body: &DataRowBody) -> Result<Self, Error> {
        let whole = body.buffer_bytes();
        let values = body.ranges().map(|range| Ok(range.map(|range| whole.slice(range)))).collect();
        values.map(Row).map_err(|_: io::Error| Error::Protocol("row"))
    }

    /// The column's text, none where it is null.
    ///
    /// # Errors
    /// There is no such column, or its text is not UTF-8.
    pub fn get(&self, column: usize) -> Result<Option<&str>, Error> {
        let value = self.0.get(column).ok_or(Error::Protocol("column count"))?;
        let text = value.as_ref().map(|bytes| std::str::from_utf8(bytes)).transpose();
        text.map_err(|_| Error::Protocol("text that is not UTF-8"))
    }

    /// The text of a column that cannot be null.
    ///
    /// # Errors
    /// As [`Row::get`], or it is null.
    pub fn text(&self, column: usize) -> Result<&str, Error> {
        self.get(column)?.ok_or(Error::Protocol("null where a value is promised"))
    }

    /// The column read as `T`.
    ///
    /// # Errors
    /// As [`Row::text`], or the text is no `T`.
    pub fn parse<T: std::str::FromStr>(&self, column: usize) -> Result<T, Error> {
        self.text(column)?.parse().map_err(|_| Error::Protocol("value of another type"))
    }
}

impl StartOptions<'_> {
    fn command(&self) -> String {
        let names: Vec<_> = self.publications.iter().map(|name| quoted(name, '"')).collect();
        let mut options = vec![
            format!("proto_version '{}'", if self.streaming { 2 } else { 1 }),
            format!("publication_names {}", quoted(&names.join(","), '\'')),
            "messages 'on'".to_owned(),
        ];
        if self.streaming {
            options.push("streaming 'on'".to_owned());
        }
        if self.binary {
            options.push("binary 'on'".to_owned());
        }
        format!("START_REPLICATION SLOT {} LOGICAL 0/0 ({})", quoted(self.slot, '"'), options.join(", "))
    }
}

/// As an identifier or a literal of the replication grammar, which knows no escapes but doubling.
fn quoted(text: &str, quote: char) -> String {
    format!("{quote}{}{quote}", text.replace(quote, &format!("{quote}{quote}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_on_both_levels() {
        let publications = ["a".to_owned(), "it's \"b\"".to_owned()];
        let options = StartOptions {
            slot: "s",
            publications: &publications,
            streaming: true,
            binary: false,
            idle_timeout: Duration::ZERO,
        };
        assert_eq!(
            options.command(),
            "START_REPLICATION SLOT \"s\" LOGICAL 0/0 (proto_version '2', publication_names \
             '\"a\",\"it''s \"\"b\"\"\"', messages 'on', streaming 'on')"
        );
    }
}
