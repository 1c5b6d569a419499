//! Checks 6 and 7: who the server is, and who we are.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;
use trellara_engine::postgres::{Error, connect};
use trellara_engine::settings::{Password, Server, TlsMode, TlsSettings};

use super::{open, session};
use crate::cluster::Cluster;
use crate::eventually::eventually;

/// One cluster with TLS, and roles for each way to authenticate.
struct Secured {
    cluster: Cluster,
    files: TempDir,
}

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Certificate and key, both PEM.
fn issue(authority: &Authority, common_name: &str, hosts: &[&str]) -> (String, String) {
    let mut params =
        CertificateParams::new(hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>()).unwrap();
    params.distinguished_name.push(DnType::CommonName, common_name);
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, authority).unwrap().pem(), key.serialize_pem())
}

impl Secured {
    async fn start() -> Secured {
        const HBA: &str = "local all all trust\n\
                           hostssl all by_certificate 127.0.0.1/32 cert\n\
                           host all by_scram 127.0.0.1/32 scram-sha-256\n\
                           host all by_md5 127.0.0.1/32 md5\n\
                           host all by_password 127.0.0.1/32 password\n\
                           host all all 127.0.0.1/32 trust\n";
        const ROLES: &str = "CREATE ROLE by_certificate LOGIN REPLICATION; \
                             SET password_encryption = 'scram-sha-256'; \
                             CREATE ROLE by_scram LOGIN REPLICATION PASSWORD 'sesame'; \
                             CREATE ROLE by_password LOGIN REPLICATION PASSWORD 'sesame'; \
                             SET password_encryption = 'md5'; \
                             CREATE ROLE by_md5 LOGIN REPLICATION PASSWORD 'sesame'";
        let ca = authority("test authority");
        let (certificate, key) = issue(&ca, "server", &["127.0.0.1"]);
        let (client_certificate, client_key) = issue(&ca, "by_certificate", &[]);
        let files = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(files.path().join(name), text).unwrap();
        write("ca.pem", &ca.pem());
        write("other-ca.pem", &authority("another authority").pem());
        write("client.pem", &client_certificate);
        write("client.key", &client_key);
        let cluster = Cluster::start(&[]);
        cluster.write_file("server.crt", &certificate);
        cluster.write_file("server.key", &key);
        cluster.write_file("ca.crt", &ca.pem());
        cluster.write_file("pg_hba.conf", HBA);
        let client = cluster.client("postgres").await;
        client.batch_execute(ROLES).await.unwrap();
        for setting in ["ssl = on", "ssl_ca_file = 'ca.crt'"] {
            client.batch_execute(&format!("ALTER SYSTEM SET {setting}")).await.unwrap();
        }
        cluster.reload();
        let secured = Secured { cluster, files };
        eventually("the server offers TLS", || async {
            open(&secured.server(TlsMode::Require, None)).await.ok()
        })
        .await;
        secured
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    fn server(&self, mode: TlsMode, ca: Option<&Path>) -> Server {
        let tls =
            TlsSettings { mode, ca_file: ca.map(Path::to_owned), certificate_file: None, key_file: None };
        Server { tls, ..self.cluster.server("postgres") }
    }

    fn as_role(&self, user: &str, password: Password) -> Server {
        Server { user: user.into(), password, ..self.server(TlsMode::Require, None) }
    }
}

/// Opens both kinds of connection; they share everything below the protocol.
async fn both(server: &Server) -> Result<(), Error> {
    let mut replication = open(server).await?;
    let rows = replication.command("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").await?;
    let client = connect(server, &session()).await?;
    let row = client.query_one("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", &[]).await?;
    assert_eq!(rows[0].text(0)? == "t", row.get::<_, bool>(0));
    assert_eq!(row.get::<_, bool>(0), server.tls.mode != TlsMode::Disable);
    Ok(())
}

#[tokio::test]
async fn check_6_certificates_are_checked_as_far_as_the_mode_says() {
    let secured = Secured::start().await;
    let (ca, other) = (secured.file("ca.pem"), secured.file("other-ca.pem"));
    for mode in [TlsMode::VerifyFull, TlsMode::VerifyCa] {
        both(&secured.server(mode, Some(&ca))).await.unwrap();
        let refused = both(&secured.server(mode, Some(&other))).await.unwrap_err();
        assert!(matches!(refused, Error::Tls(_)), "{refused:?}");
        let refused = both(&secured.server(mode, None)).await.unwrap_err();
        assert!(matches!(refused, Error::Tls(_)), "system roots do not know the authority: {refused:?}");
    }
    both(&secured.server(TlsMode::Require, None)).await.unwrap();
    both(&secured.server(TlsMode::Disable, None)).await.unwrap();

    let by_name = |mode| Server { host: "localhost".into(), ..secured.server(mode, Some(&ca)) };
    let refused = both(&by_name(TlsMode::VerifyFull)).await.unwrap_err();
    assert!(matches!(refused, Error::Tls(_)), "the certificate names 127.0.0.1 only: {refused:?}");
    both(&by_name(TlsMode::VerifyCa)).await.unwrap();
}

#[tokio::test]
async fn check_6_a_client_certificate_opens_what_asks_for_one() {
    let secured = Secured::start().await;
    let mut server = secured.as_role("by_certificate", Password::None);
    let refused = both(&server).await.unwrap_err();
    assert_eq!(refused.sqlstate(), Some("28000"));
    server.tls.certificate_file = Some(secured.file("client.pem"));
    server.tls.key_file = Some(secured.file("client.key"));
    both(&server).await.unwrap();
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_tls_is_asked_for() {
    let tls = TlsSettings { mode: TlsMode::Require, ca_file: None, certificate_file: None, key_file: None };
    let refused = open(&Server { tls, ..Cluster::shared().server("postgres") }).await.unwrap_err();
    assert!(matches!(refused, Error::Tls(_)));
}

#[tokio::test]
async fn check_7_passwords_are_proven_by_scram_md5_or_in_clear() {
    let secured = Secured::start().await;
    let literal = |text: &str| Password::Literal(text.to_owned().into());
    for role in ["by_scram", "by_md5", "by_password"] {
        both(&secured.as_role(role, literal("sesame"))).await.unwrap();
        let wrong = open(&secured.as_role(role, literal("wrong"))).await.unwrap_err();
        assert_eq!(wrong.sqlstate(), Some("28P01"), "{role}");
        let none = open(&secured.as_role(role, Password::None)).await.unwrap_err();
        assert!(matches!(none, Error::Password(_)), "{role}");
    }
    let file = secured.file("password");
    std::fs::write(&file, "sesame\n").unwrap();
    both(&secured.as_role("by_scram", Password::File(file.clone()))).await.unwrap();
    std::fs::write(&file, "rotated\n").unwrap();
    assert!(open(&secured.as_role("by_scram", Password::File(file))).await.is_err());
}
