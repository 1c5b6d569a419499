//! File descriptors: as many as the operating system allows, and no more flows than they suffice for. Met at
//! the limit, every new connection of every flow would fail, and so would the store.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use trellara_actors::failure::Code;

/// The store's files, the pools of the targets, and everything else that is not a flow's own.
const SHARED: u64 = 1024;
/// Stream, control connection and one on its way, of each flow.
const PER_FLOW: u64 = 3;

/// The configuration has more flows than this process may open connections for.
#[derive(Debug, thiserror::Error)]
#[error(
    "{code}: {flows} flows need {needed} file descriptors, this process may open {limit}; put \
     LimitNOFILE={needed} into the [Service] section of its systemd unit"
)]
pub(super) struct TooFew {
    code: Code,
    flows: u64,
    needed: u64,
    limit: u64,
}

/// Raises the soft limit to the hard one. What cannot be raised counts as it is.
pub(super) fn raise() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}

/// # Errors
/// As `TooFew` says.
pub(super) fn suffice_for(flows: usize) -> Result<(), TooFew> {
    within(getrlimit(Resource::Nofile).current, flows)
}

/// No limit is none.
fn within(limit: Option<u64>, flows: usize) -> Result<(), TooFew> {
    let flows = flows as u64;
    let needed = flows.saturating_mul(PER_FLOW).saturating_add(SHARED);
    match limit {
        Some(limit) if needed > limit => Err(TooFew { code: Code::TooManyFlows, flows, needed, limit }),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;

    #[test]
    fn more_flows_than_descriptors_suffice_for_are_refused_with_the_line_that_helps() {
        within(Some(4096), 1024).unwrap();
        within(None, 1_000_000).unwrap();
        let refused = within(Some(4096), 1025).unwrap_err().to_string();
        assert!(refused.starts_with("TRL-0707: 1025 flows"), "{refused}");
        assert!(refused.contains("LimitNOFILE=4099 "), "{refused}");
        within(Some(4099), 1025).unwrap();
        assert!(within(Some(100), 1).is_err());
    }

    #[test]
    fn the_limit_is_raised_as_far_as_it_goes() {
        raise();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
