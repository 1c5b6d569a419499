//! Connections to PostgreSQL: settings, TLS, sessions, names, and the translation of what it says when it
//! fails.

mod connect;
mod dial;
mod error;
pub mod failure;
pub mod ident;
mod passfile;
pub mod pool;
pub mod replication;
mod session;
mod tls;

pub use connect::connect;
pub use error::{Error, ServerError};
pub use session::Session;
