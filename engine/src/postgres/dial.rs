//! The socket below every connection: TCP or a Unix socket, with TLS where the settings ask for it.
//!
//! Both kinds of connection (SQL and replication) come through here, so that name resolution, TLS and
//! dead-peer detection behave alike.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio_rustls::client::TlsStream;

use super::error::Error;
use super::tls;
use crate::settings::{Server, TlsMode};

/// The kernel notices a peer that vanished while nothing is being sent.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 3;

#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
}

/// Opens the socket. The caller bounds the time.
pub(super) async fn dial(server: &Server) -> Result<Socket, Error> {
    if server.host.starts_with('/') {
        let path = format!("{}/.s.PGSQL.{}", server.host, server.port);
        return UnixStream::connect(path).await.map(Socket::Unix).map_err(Error::Connect);
    }
    let stream = dial_tcp(server).await?;
    match server.tls.mode {
        TlsMode::Disable => Ok(Socket::Tcp(stream)),
        TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => {
            let stream = ask_for_tls(stream).await?;
            let stream = tls::handshake(stream, &server.host, &server.tls).await?;
            Ok(Socket::Tls(Box::new(stream)))
        }
    }
}

async fn dial_tcp(server: &Server) -> Result<TcpStream, Error> {
    let addresses = lookup_host((server.host.as_str(), server.port)).await.map_err(Error::NameResolution)?;
    let mut last = io::Error::new(io::ErrorKind::NotFound, "host name has no address");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                prepare(&stream).map_err(Error::Connect)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(Error::Connect(last))
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES)?;
    Ok(())
}

/// Reads one byte only: anything that the server (or someone in between) sent behind it in clear is left to
/// the handshake, which fails on it.
async fn ask_for_tls(mut stream: TcpStream) -> Result<TcpStream, Error> {
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    stream.write_all(&request).await?;
    match stream.read_u8().await? {
        b'S' => Ok(stream),
        b'N' => Err(Error::Tls(io::Error::other("server does not offer TLS"))),
        _ => Err(Error::Protocol("answer to the request for TLS")),
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Socket::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
            Socket::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Socket::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
            Socket::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Socket::Tls(stream) => Pin::new(stream).poll_flush(context),
            Socket::Unix(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Socket::Tls(stream) => Pin::new(stream).poll_shutdown(context),
            Socket::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
