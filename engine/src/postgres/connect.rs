//! SQL sessions: a tokio-postgres client over our own socket, with everything pinned.

use secrecy::ExposeSecret;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, NoTls};

use super::dial::dial;
use super::error::Error;
use super::session::{PINNED_SINCE_17, Session, VERSION_17, read_password, start_up_options, version_number};
use crate::settings::Server;

/// Opens a session within `server.connect_timeout`. Its driver is spawned on the current runtime and ends
/// with the client.
///
/// # Errors
/// Whatever keeps the session from being ready for its first statement.
///
/// # Cancel safety
/// Dropping the future closes the socket.
pub async fn connect(server: &Server, session: &Session) -> Result<Client, Error> {
    timeout(server.connect_timeout, open(server, session)).await.map_err(|_| Error::TimedOut("connection"))?
}

async fn open(server: &Server, session: &Session) -> Result<Client, Error> {
    let password = read_password(server).await?;
    let socket = dial(server).await?;
    let mut config = Config::new();
    config
        .user(&server.user)
        .dbname(&server.database)
        .application_name(&session.application_name)
        .options(start_up_options(session, &[]))
        // The socket below is encrypted already where it has to be.
        .ssl_mode(SslMode::Disable);
    if let Some(password) = password {
        config.password(password.expose_secret());
    }
    let (client, driver) = config.connect_raw(socket, NoTls).await?;
    let version = driver.parameter("server_version").and_then(version_number);
    tokio::spawn(driver);
    if version.ok_or(Error::Protocol("server version"))? >= VERSION_17 {
        client.batch_execute(PINNED_SINCE_17).await?;
    }
    Ok(client)
}
