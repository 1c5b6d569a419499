//! Commands about quarantined transactions.

pub(crate) mod discard;
pub(crate) mod list;
pub(crate) mod replay;
pub(crate) mod show;
