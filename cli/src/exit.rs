//! The table of exit codes, and how failures come to one.

use std::process::ExitCode;

use trellara_api::client;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: answered, or done.
    Done,
    /// 1: refused or failed; the code is on stderr.
    Failed,
    /// 2: the command line is wrong (also what the argument parser exits with).
    Usage,
    /// 3: a gate found something, or a report did under `--exit-code`.
    Finding,
    /// 4: the engine is not reachable.
    Unreachable,
    /// 5: the answer is partial, under `--exit-code`.
    Partial,
}

impl Exit {
    pub const fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Finding => 3,
            Exit::Unreachable => 4,
            Exit::Partial => 5,
        }
    }

    /// Of a report: 0 once answered, unless `--exit-code` asks for more. A finding outranks a gap.
    pub(crate) fn of_report(exit_code: bool, finding: bool, partial: bool) -> Self {
        match (exit_code, finding, partial) {
            (false, _, _) | (true, false, false) => Exit::Done,
            (true, true, _) => Exit::Finding,
            (true, false, true) => Exit::Partial,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

/// Why a command did not end by itself.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The engine did not answer, or said no.
    Engine(client::Error),
    /// The command line asks for what cannot be.
    Usage(String),
    /// Something on this machine failed.
    Local(anyhow::Error),
}

impl From<client::Error> for Failure {
    fn from(error: client::Error) -> Self {
        Failure::Engine(error)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure::Local(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Local(error.into())
    }
}

impl Failure {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Failure::Engine(client::Error::Unreachable { .. }) => Exit::Unreachable,
            Failure::Engine(
                client::Error::TimedOut { .. } | client::Error::Refused(_) | client::Error::Unexpected(_),
            )
            | Failure::Local(_) => Exit::Failed,
            Failure::Usage(_) => Exit::Usage,
        }
    }
}
