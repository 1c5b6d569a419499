//! One side's server: the URL taken apart, certificates, and where the password comes from. Secrets are
//! named here, never held: a password inside a URL or written out is refused.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_postgres::config::Host;
use trellara_storage::FlowName;

use super::ident;
use super::section::{Section, Text};
use super::tree::{Node, Origin};
use crate::settings::{Password, Server, TlsMode, TlsSettings};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const EXAMPLE_URL: &str = "postgresql://role@host:5432/database";

/// Reads `url`, `tls`, `sslrootcert`, `sslcert`, `sslkey`, `password` and `connect_timeout`.
pub(super) fn read(section: &mut Section<'_>, flow: &FlowName, base: &Path) -> Option<Server> {
    let url = section.required("url", EXAMPLE_URL);
    let address = url.as_ref().and_then(|url| address(section, url, flow));
    let socket = address.as_ref().is_some_and(|address| address.host.starts_with('/'));
    let tls = tls(section, flow, base, socket);
    let password = password(section, flow, base);
    let connect_timeout = section.duration("connect_timeout", CONNECT_TIMEOUT);
    let Address { host, port, database, user } = address?;
    Some(Server { host, port, database, user, password, tls, connect_timeout })
}

struct Address {
    host: String,
    port: u16,
    database: String,
    user: String,
}

fn address(section: &Section<'_>, url: &Text, flow: &FlowName) -> Option<Address> {
    let findings = section.findings();
    let refuse = |what: &str, instead: &str| {
        findings.add(&url.origin, what, Some(instead.to_owned()));
        None
    };
    let expanded = ident::expand(url, flow, findings);
    let form = format!("write {EXAMPLE_URL}, or postgresql://role@/database?host=/socket/directory");
    if !expanded.starts_with("postgresql://") && !expanded.starts_with("postgres://") {
        return refuse("is not a PostgreSQL URL", &form);
    }
    if let Some(parameter) = foreign_parameter(&expanded) {
        let what = format!("holds the parameter {parameter:?}");
        return refuse(&what, "leave only host and port; tls and connect_timeout are keys beside url");
    }
    // The library's error text may repeat the URL, so it is not shown.
    let Ok(parsed) = expanded.parse::<tokio_postgres::Config>() else {
        return refuse("is not a valid PostgreSQL URL", &form);
    };
    if parsed.get_password().is_some() {
        let instead =
            "take it out, and write password: { env: NAME }, { file: PATH } or { passfile: PATH } beside url";
        return refuse("holds a password", instead);
    }
    let [host] = parsed.get_hosts() else {
        return refuse("must name exactly one host", &form);
    };
    let host = match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(directory) => directory.display().to_string(),
    };
    let Some(user) = parsed.get_user() else { return refuse("names no role", &form) };
    let Some(database) = parsed.get_dbname() else { return refuse("names no database", &form) };
    let port = parsed.get_ports().first().copied().unwrap_or(5432);
    Some(Address { host, port, database: database.to_owned(), user: user.to_owned() })
}

/// A parameter that would be a second way to say what has a key of its own.
fn foreign_parameter(url: &str) -> Option<&str> {
    let (_, query) = url.split_once('?')?;
    let names = query.split('&').map(|pair| pair.split('=').next().unwrap_or(pair));
    names.into_iter().find(|name| !matches!(*name, "host" | "port" | ""))
}

fn tls(section: &mut Section<'_>, flow: &FlowName, base: &Path, socket: bool) -> TlsSettings {
    let choices = [
        ("disable", TlsMode::Disable),
        ("require", TlsMode::Require),
        ("verify-ca", TlsMode::VerifyCa),
        ("verify-full", TlsMode::VerifyFull),
    ];
    let chosen = section.choice("tls", &choices);
    let (ca_file, _) = path(section, "sslrootcert", flow, base).unzip();
    let (certificate_file, certificate_at) = path(section, "sslcert", flow, base).unzip();
    let (key_file, key_at) = path(section, "sslkey", flow, base).unzip();
    let mode = match chosen {
        // A Unix socket has no TLS, whatever the fleet's default is.
        _ if socket => TlsMode::Disable,
        Some(mode) => mode,
        None => TlsMode::VerifyFull,
    };
    if let (Some(at), None) | (None, Some(at)) = (certificate_at, key_at) {
        section.findings().add(&at, "sslcert and sslkey go together", None);
    }
    if mode == TlsMode::Disable && !socket && (ca_file.is_some() || certificate_file.is_some()) {
        let instead = Some("write tls: verify-full, or take the certificates out".to_owned());
        section.findings().add(section.origin(), "certificates are named, but tls is disabled", instead);
    }
    TlsSettings { mode, ca_file, certificate_file, key_file }
}

/// A file, and where it is named.
fn path(
    section: &mut Section<'_>,
    key: &'static str,
    flow: &FlowName,
    base: &Path,
) -> Option<(PathBuf, Origin)> {
    let text = section.text(key)?;
    Some((super::resolve(base, &ident::expand(&text, flow, section.findings())), text.origin))
}

fn password(section: &mut Section<'_>, flow: &FlowName, base: &Path) -> Password {
    let Some(item) = section.item("password") else { return Password::None };
    let origin = item.origin.clone();
    let findings = section.findings();
    if !matches!(item.node, Node::Table(_)) {
        let instead = "write password: { env: NAME }, { file: PATH } or { passfile: PATH }".to_owned();
        findings.add(&origin, "is written out", Some(instead));
        return Password::None;
    }
    let mut secret = Section::new(item, findings);
    let variable = secret.text("env");
    let file = path(&mut secret, "file", flow, base).map(|(file, _)| file);
    let passfile = path(&mut secret, "passfile", flow, base).map(|(file, _)| file);
    secret.finish();
    match (variable, file, passfile) {
        (Some(variable), None, None) => Password::Env(ident::expand(&variable, flow, findings)),
        (None, Some(file), None) => Password::File(file),
        (None, None, Some(file)) => Password::Passfile(file),
        (_, _, _) => {
            findings.add(&origin, "wants exactly one of env, file and passfile", None);
            Password::None
        }
    }
}
