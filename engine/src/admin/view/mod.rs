//! From what the fleet shows and the store holds to what the API says. Pure, one file per answer.

pub(super) mod flow;
pub(super) mod location;
pub(super) mod quarantine;
pub(super) mod report;
pub(super) mod status;
