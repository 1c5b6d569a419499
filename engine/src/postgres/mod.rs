//! Connections to PostgreSQL: settings, TLS, sessions, names, and the translation of what it says when it
//! fails.

pub mod failure;
pub mod ident;
