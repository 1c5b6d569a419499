//! Structured logs on stderr: plain text, coloured on a terminal.
//!
//! Row values, connection strings and SQL with literals never reach a log line: adapters put PostgreSQL's
//! own words into evidence and hand a summary without values to whoever logs.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Installs the subscriber once per process. `RUST_LOG` overrides the default level (info; warn for the
/// libraries underneath).
pub fn install() {
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new("info,tokio_postgres=warn,rustls=warn,hyper=warn"));
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_target(false).with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        builder.init();
    } else {
        builder.with_ansi(false).init();
    }
}
