//! The command line: asks the engine over its admin socket, or has the engine's binary do what needs no
//! running engine, and shows the answer.
//!
//! Owns arguments, the few settings it reads itself, rendering and exit codes. Never touches the store or a
//! database. Data goes to stdout, everything else to stderr. The one danger: a broken configuration or a
//! dead source that locks an operator out of `status`, hence the lenient reading in `settings`.

pub mod args;
mod commands;
mod exit;
mod output;
mod run;
mod settings;
mod tool;

pub use exit::Exit;
pub use run::run;
