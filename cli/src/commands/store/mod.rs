//! Commands about the store.

pub(crate) mod backup;
pub(crate) mod inspect;
pub(crate) mod recover;
