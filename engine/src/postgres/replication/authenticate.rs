//! Start-up of a replication connection: parameters, password, and what the server tells about itself.

use std::collections::BTreeMap;

use postgres_protocol::authentication::{md5_hash, sasl};
use postgres_protocol::message::backend::{AuthenticationSaslBody, Message};
use postgres_protocol::message::frontend;
use secrecy::{ExposeSecret, SecretString};
use tokio_postgres::fallible_iterator::FallibleIterator;

use super::channel::{Channel, Received, server_error};
use crate::postgres::error::Error;

/// What the server sent between start-up and its first ReadyForQuery.
#[derive(Debug, Default)]
pub(super) struct Greeting {
    pub(super) parameters: BTreeMap<String, String>,
    pub(super) process_id: i32,
    pub(super) secret_key: i32,
}

/// Sends the start-up message and answers whatever authentication the server asks for.
pub(super) async fn start_up(
    channel: &mut Channel,
    parameters: &[(&str, &str)],
    user: &str,
    password: Option<&SecretString>,
) -> Result<Greeting, Error> {
    frontend::startup_message(parameters.iter().copied(), &mut channel.write).map_err(unwritable)?;
    channel.flush().await?;
    authenticate(channel, user, password).await?;
    greeting(channel).await
}

async fn authenticate(
    channel: &mut Channel,
    user: &str,
    password: Option<&SecretString>,
) -> Result<(), Error> {
    let secret = || password.map(|secret| secret.expose_secret().as_bytes()).ok_or_else(no_password);
    loop {
        match next(channel).await? {
            Message::AuthenticationOk => return Ok(()),
            Message::AuthenticationCleartextPassword => {
                frontend::password_message(secret()?, &mut channel.write).map_err(unwritable)?;
            }
            Message::AuthenticationMd5Password(body) => {
                let hash = md5_hash(user.as_bytes(), secret()?, body.salt());
                frontend::password_message(hash.as_bytes(), &mut channel.write).map_err(unwritable)?;
            }
            Message::AuthenticationSasl(body) => scram(channel, &body, secret()?).await?,
            _ => return Err(Error::Protocol("authentication method that is not supported")),
        }
        channel.flush().await?;
    }
}

/// SCRAM-SHA-256, both sides proving that they know the password.
async fn scram(channel: &mut Channel, offer: &AuthenticationSaslBody, password: &[u8]) -> Result<(), Error> {
    let refused = |_| Error::Protocol("SCRAM exchange");
    let offered = offer.mechanisms().any(|name| Ok(name == sasl::SCRAM_SHA_256)).map_err(refused)?;
    if !offered {
        return Err(Error::Protocol("SASL mechanism that is not supported"));
    }
    let mut exchange = sasl::ScramSha256::new(password, sasl::ChannelBinding::unsupported());
    frontend::sasl_initial_response(sasl::SCRAM_SHA_256, exchange.message(), &mut channel.write)
        .map_err(unwritable)?;
    channel.flush().await?;
    let Message::AuthenticationSaslContinue(body) = next(channel).await? else {
        return Err(Error::Protocol("SCRAM challenge"));
    };
    exchange.update(body.data()).map_err(refused)?;
    frontend::sasl_response(exchange.message(), &mut channel.write).map_err(unwritable)?;
    channel.flush().await?;
    let Message::AuthenticationSaslFinal(body) = next(channel).await? else {
        return Err(Error::Protocol("SCRAM proof of the server"));
    };
    exchange.finish(body.data()).map_err(refused)
}

async fn greeting(channel: &mut Channel) -> Result<Greeting, Error> {
    let mut greeting = Greeting::default();
    loop {
        match next(channel).await? {
            Message::ParameterStatus(body) => {
                let malformed = |_| Error::Protocol("parameter status");
                let name = body.name().map_err(malformed)?.to_owned();
                greeting.parameters.insert(name, body.value().map_err(malformed)?.to_owned());
            }
            Message::BackendKeyData(body) => {
                greeting.process_id = body.process_id();
                greeting.secret_key = body.secret_key();
            }
            Message::ReadyForQuery(_) => return Ok(greeting),
            _ => return Err(Error::Protocol("message during start-up")),
        }
    }
}

/// The next message that is neither a notice nor an error.
async fn next(channel: &mut Channel) -> Result<Message, Error> {
    loop {
        match channel.receive().await? {
            Received::Other(Message::NoticeResponse(_)) => {}
            Received::Other(Message::ErrorResponse(body)) => return Err(server_error(&body)),
            Received::Other(message) => return Ok(message),
            Received::CopyBoth | Received::CopyData(_) => {
                return Err(Error::Protocol("copy data during start-up"));
            }
        }
    }
}

fn no_password() -> Error {
    Error::Password(std::io::Error::other("server asks for a password and none is configured"))
}

/// A string with a zero byte, or a message beyond 2 GB.
pub(super) fn unwritable(_: std::io::Error) -> Error {
    Error::Protocol("text that the protocol cannot carry")
}
