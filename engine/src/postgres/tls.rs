//! TLS for every connection: rustls with ring, certificates read from their files at each connect, so that
//! rotation needs no restart.
//!
//! The one danger: a mode that checks less than its name says. `Require` checks nothing by definition;
//! the other two never fall back.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
};

use super::error::Error;
use crate::settings::{TlsMode, TlsSettings};

/// Performs the handshake on a connection that the server has agreed to encrypt.
pub(super) async fn handshake(
    stream: TcpStream,
    host: &str,
    settings: &TlsSettings,
) -> Result<TlsStream<TcpStream>, Error> {
    let settings = settings.clone();
    let config = tokio::task::spawn_blocking(move || client_config(&settings))
        .await
        .map_err(|failed| Error::Tls(io::Error::other(failed)))?
        .map_err(Error::Tls)?;
    let name = ServerName::try_from(host.to_owned()).map_err(|bad| Error::Tls(io::Error::other(bad)))?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(Error::Tls)
}

fn client_config(settings: &TlsSettings) -> io::Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier::new(settings, &provider)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    match (&settings.certificate_file, &settings.key_file) {
        (Some(certificate), Some(key)) => {
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, error))?;
            config.with_client_auth_cert(certificates(certificate)?, key).map_err(io::Error::other)
        }
        (None, None) => Ok(config.with_no_client_auth()),
        (Some(_), None) | (None, Some(_)) => {
            Err(io::Error::other("a client certificate needs both its certificate and its key file"))
        }
    }
}

fn certificates(file: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(file).map_err(|error| unreadable(file, error))?.collect();
    let found = found.map_err(|error| unreadable(file, error))?;
    if found.is_empty() {
        return Err(io::Error::other(format!("{} holds no certificate", file.display())));
    }
    Ok(found)
}

fn unreadable(file: &Path, error: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {error}", file.display()))
}

/// The CA file, or the system's roots, which are read once.
fn roots(ca_file: Option<&Path>) -> io::Result<Arc<RootCertStore>> {
    static SYSTEM: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let Some(file) = ca_file else {
        let system = SYSTEM.get_or_init(|| {
            let mut store = RootCertStore::empty();
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            Arc::new(store)
        });
        return Ok(Arc::clone(system));
    };
    let mut store = RootCertStore::empty();
    for certificate in certificates(file)? {
        store.add(certificate).map_err(|error| unreadable(file, error))?;
    }
    Ok(Arc::new(store))
}

/// Checks as much of the server's certificate as the mode asks for; always that the server holds its key.
#[derive(Debug)]
struct Verifier {
    /// None: the chain is not checked.
    roots: Option<Arc<RootCertStore>>,
    check_name: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    fn new(settings: &TlsSettings, provider: &CryptoProvider) -> io::Result<Self> {
        let (check_chain, check_name) = match settings.mode {
            TlsMode::Disable | TlsMode::Require => (false, false),
            TlsMode::VerifyCa => (true, false),
            TlsMode::VerifyFull => (true, true),
        };
        let roots = if check_chain { Some(roots(settings.ca_file.as_deref())?) } else { None };
        Ok(Self { roots, check_name, algorithms: provider.signature_verification_algorithms })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            let algorithms = self.algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&certificate, roots, intermediates, now, algorithms)?;
            if self.check_name {
                verify_server_name(&certificate, server_name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
