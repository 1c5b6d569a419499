//! What can go wrong between here and a PostgreSQL server, before it is judged.

use std::io;

use actors::failure::{ErrorFacts, ErrorKind};
use trellara_actors as actors;

use super::failure;
use crate::decode::Malformed;

/// An error of a connection. Its text carries PostgreSQL's own words where the server sent some; those may
/// hold row values, so it is evidence and never a log line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("host name does not resolve")]
    NameResolution(#[source] io::Error),
    #[error("cannot connect")]
    Connect(#[source] io::Error),
    #[error("TLS failed")]
    Tls(#[source] io::Error),
    #[error("password cannot be read")]
    Password(#[source] io::Error),
    #[error("connection lost")]
    Lost(#[source] io::Error),
    #[error("no answer in time: {0}")]
    TimedOut(&'static str),
    #[error("server said: {0}")]
    Server(Box<ServerError>),
    #[error("unexpected answer of the server: {0}")]
    Protocol(&'static str),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    Sql(#[from] tokio_postgres::Error),
}

/// An ErrorResponse of the replication protocol, text made readable whatever its encoding.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{sqlstate}: {message}")]
pub struct ServerError {
    pub sqlstate: String,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    pub context: Option<String>,
    /// Where the server raised it; classification tells access checks by it.
    pub source_file: Option<String>,
}

impl Error {
    /// The facts that classification judges.
    pub fn into_facts(self) -> ErrorFacts {
        let kind = match &self {
            Error::Sql(error) => return failure::facts(error),
            Error::Server(_) => return self.into_server_facts(),
            Error::NameResolution(_) => ErrorKind::NameResolution,
            Error::Connect(_) => ErrorKind::ConnectRefused,
            Error::Tls(_) => ErrorKind::Tls,
            // A secret that cannot be read is refused authentication, found before the server was asked.
            Error::Password(_) => ErrorKind::Database { sqlstate: "28000".into() },
            Error::Lost(_) | Error::TimedOut(_) => ErrorKind::ConnectionLost,
            Error::Protocol(_) | Error::Malformed(_) => ErrorKind::Protocol,
        };
        ErrorFacts { kind: Some(kind), message: self.with_cause(), ..ErrorFacts::default() }
    }

    /// SQLSTATE, where a server sent one.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Error::Server(error) => Some(&error.sqlstate),
            Error::Sql(error) => error.code().map(tokio_postgres::error::SqlState::code),
            Error::NameResolution(_)
            | Error::Connect(_)
            | Error::Tls(_)
            | Error::Password(_)
            | Error::Lost(_)
            | Error::TimedOut(_)
            | Error::Protocol(_)
            | Error::Malformed(_) => None,
        }
    }

    fn into_server_facts(self) -> ErrorFacts {
        let Error::Server(error) = self else { return ErrorFacts::default() };
        ErrorFacts {
            kind: Some(ErrorKind::Database { sqlstate: error.sqlstate }),
            message: error.message,
            detail: error.detail,
            hint: error.hint,
            context: error.context,
            source_file: error.source_file,
            ..ErrorFacts::default()
        }
    }

    fn with_cause(&self) -> String {
        match std::error::Error::source(self) {
            Some(cause) => format!("{self}: {cause}"),
            None => self.to_string(),
        }
    }
}

/// An I/O error of an established connection. TLS 1.3 reports a refused client certificate here, on the
/// first read.
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        let tls = error.get_ref().is_some_and(|inner| inner.is::<tokio_rustls::rustls::Error>());
        if tls { Error::Tls(error) } else { Error::Lost(error) }
    }
}
