//! One file per command: ask, show, and say how it ended.

pub(crate) mod completions;
pub(crate) mod config_reload;
pub(crate) mod flow;
pub(crate) mod init;
pub(crate) mod locate_local;
pub(crate) mod preflight;
pub(crate) mod quarantine;
pub(crate) mod repair_plan;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod store;
pub(crate) mod version;
