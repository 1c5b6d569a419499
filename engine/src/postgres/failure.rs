//! What PostgreSQL and the network say when something fails, as the facts that `classify` judges.
//!
//! Nothing here decides: a class is given in `trellara_actors::failure` only. PostgreSQL's texts may carry
//! row values, so they go into the facts and never into a log line.

use std::error::Error as _;
use std::io;

use tokio_postgres::error::{DbError, Severity};
use trellara_actors::failure::{ErrorFacts, ErrorKind, Failure, Place, classify};

/// Facts of an error of the client library.
pub fn facts(error: &tokio_postgres::Error) -> ErrorFacts {
    if let Some(answer) = error.as_db_error() {
        return answered(answer);
    }
    if let Some(cause) = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()) {
        return io_facts(cause);
    }
    let kind =
        if error.is_closed() || is_timeout(error) { ErrorKind::ConnectionLost } else { kind_of(error) };
    let message = error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
    ErrorFacts { kind: Some(kind), message, ..ErrorFacts::default() }
}

/// An error of the client library, judged without further facts.
pub fn failure(place: Place, error: &tokio_postgres::Error) -> Failure {
    classify(place, facts(error))
}

/// Facts of an error below the protocol: sockets, files, TLS (rustls wraps its errors as `InvalidData`).
pub fn io_facts(error: &io::Error) -> ErrorFacts {
    let tls = error.get_ref().is_some_and(|cause| cause.is::<tokio_rustls::rustls::Error>());
    let kind = if tls { ErrorKind::Tls } else { io_kind(error.kind()) };
    ErrorFacts { kind: Some(kind), message: error.to_string(), ..ErrorFacts::default() }
}

/// Facts of a host name that did not resolve.
pub fn unresolved(error: &io::Error) -> ErrorFacts {
    ErrorFacts { kind: Some(ErrorKind::NameResolution), message: error.to_string(), ..ErrorFacts::default() }
}

/// Facts of a wait that ran into its deadline: whoever was asked may still be at it.
pub fn timed_out(what: &str) -> ErrorFacts {
    ErrorFacts {
        kind: Some(ErrorKind::ConnectionLost),
        message: format!("no answer in time: {what}"),
        ..ErrorFacts::default()
    }
}

/// The server answered and ended the session with it: whatever was asked may or may not have happened.
pub fn ended_session(error: &tokio_postgres::Error) -> bool {
    error
        .as_db_error()
        .is_some_and(|answer| matches!(answer.parsed_severity(), Some(Severity::Fatal | Severity::Panic)))
}

/// Facts of an ErrorResponse.
pub fn answered(answer: &DbError) -> ErrorFacts {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    ErrorFacts {
        kind: Some(ErrorKind::Database { sqlstate: answer.code().code().to_owned() }),
        message: answer.message().to_owned(),
        detail: owned(answer.detail()),
        hint: owned(answer.hint()),
        context: owned(answer.where_()),
        constraint: owned(answer.constraint()),
        schema: owned(answer.schema()),
        table: owned(answer.table()),
        column: owned(answer.column()),
        source_file: owned(answer.file()),
        enum_type: answer.routine() == Some("enum_in"),
        ..ErrorFacts::default()
    }
}

/// The client library keeps its kinds private; what they print is the only way to tell these apart.
fn kind_of(error: &tokio_postgres::Error) -> ErrorKind {
    match error.to_string().as_str() {
        "error performing TLS handshake" => ErrorKind::Tls,
        "error communicating with the server" | "error connecting to server" => ErrorKind::ConnectionLost,
        _ => ErrorKind::Protocol,
    }
}

fn is_timeout(error: &tokio_postgres::Error) -> bool {
    error.to_string() == "timeout waiting for server"
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "io::ErrorKind is non-exhaustive; the rest is a lost connection"
)]
fn io_kind(kind: io::ErrorKind) -> ErrorKind {
    match kind {
        // A missing socket file is a server that does not listen.
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::NotFound
        | io::ErrorKind::PermissionDenied
        | io::ErrorKind::AddrNotAvailable
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable => ErrorKind::ConnectRefused,
        _ => ErrorKind::ConnectionLost,
    }
}

#[cfg(test)]
mod tests {
    use trellara_actors::failure::{Class, Endpoint};

    use super::*;

    #[test]
    fn a_refused_connection_waits_for_its_endpoint() {
        let facts = io_facts(&io::Error::from(io::ErrorKind::ConnectionRefused));
        assert_eq!(classify(Place::TargetConnect, facts).class, Class::Endpoint(Endpoint::Target));
    }

    #[test]
    fn a_missing_socket_file_counts_as_refused() {
        let facts = io_facts(&io::Error::from(io::ErrorKind::NotFound));
        assert_eq!(facts.kind, Some(ErrorKind::ConnectRefused));
    }

    #[test]
    fn a_reset_connection_is_tried_again_even_at_a_change() {
        let facts = io_facts(&io::Error::from(io::ErrorKind::ConnectionReset));
        assert_eq!(classify(Place::Change(3), facts).class, Class::Transient);
    }

    #[test]
    fn a_certificate_that_does_not_fit_is_an_endpoint_failure() {
        let cause = tokio_rustls::rustls::Error::General("certificate".to_owned());
        let facts = io_facts(&io::Error::new(io::ErrorKind::InvalidData, cause));
        assert_eq!(facts.kind, Some(ErrorKind::Tls));
    }

    #[test]
    fn a_name_that_does_not_resolve_is_told_apart() {
        let facts = unresolved(&io::Error::other("no such host"));
        assert_eq!(classify(Place::SourceConnect, facts).class, Class::Endpoint(Endpoint::Source));
    }

    #[test]
    fn a_deadline_is_a_lost_connection() {
        assert_eq!(timed_out("commit").kind, Some(ErrorKind::ConnectionLost));
    }
}
