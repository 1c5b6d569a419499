//! Showing answers: data on stdout, everything else on stderr, text without colour or JSON as received.

pub(crate) mod flow;
pub(crate) mod human;
pub(crate) mod location;
pub(crate) mod plan;
pub(crate) mod quarantine;
pub(crate) mod reload;
pub(crate) mod status;
mod table;

use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use trellara_api::client::Error;
use trellara_api::{Problem, RequestCode};

use crate::args::{Format, Global};
use crate::exit::Failure;

/// Where text of a fixed width ends, so that it can be read on any screen.
pub(crate) type Out<'o> = &'o mut dyn Write;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    format: Format,
}

impl Printer {
    pub(crate) fn new(format: Format) -> Self {
        Self { format }
    }

    /// The answer: as JSON, or as `text` writes it. A reader that closed the pipe has seen enough.
    pub(crate) fn answer<T: Serialize>(
        &self,
        answer: &T,
        text: impl FnOnce(Out<'_>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let mut shown = Vec::new();
        match self.format {
            Format::Text => text(&mut shown)?,
            Format::Json => {
                serde_json::to_writer_pretty(&mut shown, answer).map_err(io::Error::from)?;
                shown.push(b'\n');
            }
        }
        match io::stdout().write_all(&shown) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// A line beside the data.
    pub(crate) fn note(&self, text: &str) {
        // Nowhere to report a closed stderr to.
        let _ = writeln!(io::stderr(), "{text}");
    }

    /// An empty screen, on a terminal.
    pub(crate) fn clear(&self) -> io::Result<()> {
        let mut out = io::stdout();
        if out.is_terminal() && self.format == Format::Text {
            out.write_all(b"\x1b[2J\x1b[H")?;
        }
        Ok(())
    }

    /// Why there is no answer, and what to do about it.
    pub(crate) fn failure(&self, failure: &Failure, global: &Global) {
        let problem = match failure {
            Failure::Engine(error) => problem(error, global),
            Failure::Usage(text) => Problem::new(RequestCode::RequestInvalid, text),
            Failure::Local(error) => return self.note(&format!("error: {error:#}")),
        };
        self.problem(&problem);
    }

    /// A refusal beside the data.
    pub(crate) fn problem(&self, problem: &Problem) {
        match self.format {
            Format::Json => self.note(&serde_json::to_string(problem).unwrap_or_default()),
            Format::Text => {
                self.note(&format!("error: {problem}"));
                if let Some(hint) = &problem.hint {
                    self.note(&format!("       {hint}"));
                }
            }
        }
    }
}

fn problem(error: &Error, global: &Global) -> Problem {
    match error {
        Error::Refused(problem) => problem.clone(),
        Error::Unreachable { socket, source } => {
            let config = crate::settings::config_path(global)
                .map_or_else(|_| String::new(), |path| format!(" --config {}", human::shell(&path)));
            Problem::new(
                RequestCode::EngineUnreachable,
                format!("nobody answers at {} ({source})", socket.display()),
            )
            .hint(format!("start it: trellara run{config}"))
        }
        Error::TimedOut { .. } => Problem::new(RequestCode::TookTooLong, error.to_string())
            .hint("the engine may still be at it; look again, or wait longer with --timeout"),
        Error::Unexpected(_) => Problem::new(RequestCode::VersionsDiffer, error.to_string())
            .hint("compare both: trellara version"),
    }
}
