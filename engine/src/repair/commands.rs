//! Steps as shell lines: quoted, complete, and with where they run.

use trellara_api::repair::{Step, StepKind};
use trellara_storage::FlowName;

use super::Desk;
use crate::settings::Server;

/// Builds the steps of one flow.
pub(super) struct Commands<'c> {
    flow: &'c FlowName,
    desk: Desk<'c>,
}

impl<'c> Commands<'c> {
    pub(super) fn new(flow: &'c FlowName, desk: Desk<'c>) -> Self {
        Self { flow, desk }
    }

    pub(super) fn flow(&self) -> String {
        self.flow.to_string()
    }

    /// A `trellara` command line.
    pub(super) fn line(&self, words: &[&str]) -> String {
        let config = self.desk.config.display().to_string();
        let words = ["trellara"].iter().chain(words).copied().chain(["--config", config.as_str()]);
        words.map(shell).collect::<Vec<_>>().join(" ")
    }

    /// The same about this flow.
    pub(super) fn of_flow(&self, words: &[&str]) -> String {
        let flow = self.flow();
        self.line(&[words, &[flow.as_str()]].concat())
    }

    /// What proves that a flow is well.
    pub(super) fn proof(&self) -> String {
        self.line(&["flow", "show", &self.flow(), "--wait", "streaming", "--timeout", "60s"])
    }

    pub(super) fn command(&self, title: impl Into<String>, words: &[&str]) -> Step {
        self.step(StepKind::Command, title.into(), self.line(words), self.desk.host.to_owned())
    }

    /// A statement for a server, run by the flow's own role.
    pub(super) fn sql(&self, title: impl Into<String>, server: &Server, statement: &str) -> Step {
        let text = format!("psql -X -v ON_ERROR_STOP=1 {} -c {}", shell(&url(server)), shell(statement));
        self.step(StepKind::Sql, title.into(), text, server.host.clone())
    }

    fn step(&self, kind: StepKind, title: String, text: String, host: String) -> Step {
        Step { kind, title, text, host, precondition: None, changes: None, undo: None, proof: None }
    }
}

/// The server as `psql` takes it; without a password, which `psql` asks for or finds by itself.
fn url(server: &Server) -> String {
    let (user, port, database) = (encode(&server.user), server.port, encode(&server.database));
    if server.host.starts_with('/') {
        return format!("postgresql://{user}@/{database}?host={}&port={port}", encode(&server.host));
    }
    format!("postgresql://{user}@{}:{port}/{database}", server.host)
}

fn encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
        encoded
    })
}

/// A word as a POSIX shell reads it back.
pub(super) fn shell(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%=,".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        for word in ["plain", "", "it's", "a b", "$HOME `x` \"y\"", "line\nbreak", "\\", "*", "-n", "é"] {
            let script = format!("printf %s {}", shell(word));
            let output = Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
        }
    }
}
