//! PostgreSQL's password file: `host:port:database:role:password`, the first line that fits counts.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use secrecy::SecretString;

use crate::settings::Server;

/// What libpq looks for where the connection goes over a Unix socket.
const LOCAL_HOST: &str = "localhost";

/// The password for this server; none when no line fits.
///
/// # Errors
/// The file cannot be read, or others may read it: libpq ignores such a file, here that is said.
pub(super) async fn read(path: &Path, server: &Server) -> io::Result<Option<SecretString>> {
    let metadata = tokio::fs::metadata(path).await?;
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "passfile must be 0600 or less"));
    }
    let text = tokio::fs::read_to_string(path).await?;
    Ok(find(&text, server).map(SecretString::from))
}

fn find(text: &str, server: &Server) -> Option<String> {
    let host = if server.host.starts_with('/') { LOCAL_HOST } else { &server.host };
    let port = server.port.to_string();
    let wanted = [host, &port, &server.database, &server.user];
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(fields).find_map(|fields| {
        let [host, port, database, role, password] = <[String; 5]>::try_from(fields).ok()?;
        let fits =
            [host, port, database, role].iter().zip(wanted).all(|(field, own)| field == "*" || field == own);
        fits.then_some(password)
    })
}

/// Up to five fields; a backslash takes the next character as it is.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.trim_end_matches('\r').chars();
    while let Some(character) = characters.next() {
        let taken = if character == '\\' { characters.next() } else { Some(character) };
        match (character, fields.last_mut(), taken) {
            (':', _, _) => fields.push(String::new()),
            (_, Some(field), Some(taken)) => field.push(taken),
            (_, _, _) => {}
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::settings::{Password, TlsMode, TlsSettings};

    fn server(host: &str) -> Server {
        Server {
            host: host.to_owned(),
            port: 5432,
            database: "pos".to_owned(),
            user: "trellara".to_owned(),
            password: Password::None,
            tls: TlsSettings {
                mode: TlsMode::Disable,
                ca_file: None,
                certificate_file: None,
                key_file: None,
            },
            connect_timeout: Duration::from_secs(1),
        }
    }

    #[test]
    fn the_first_line_that_fits_counts() {
        let file = "# fleet\nstore1:5432:pos:other:no\nstore1:*:pos:trellara:one\n*:*:*:trellara:any\n";
        assert_eq!(find(file, &server("store1")).as_deref(), Some("one"));
        assert_eq!(find(file, &server("store2")).as_deref(), Some("any"));
        assert_eq!(find("store1:5433:pos:trellara:x\n", &server("store1")), None);
    }

    #[test]
    fn a_backslash_keeps_colons_and_itself() {
        assert_eq!(find(r"*:*:*:*:a\:b\\c", &server("store1")).as_deref(), Some(r"a:b\c"));
    }

    #[test]
    fn a_socket_directory_is_localhost() {
        assert_eq!(find("localhost:5432:pos:trellara:s\n", &server("/run")).as_deref(), Some("s"));
    }
}
