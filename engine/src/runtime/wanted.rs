//! From configured flows to what the supervisor is to keep running.

use trellara_actors::fleet::WantedFlow;
use trellara_storage::families::flows;
use trellara_storage::log::LogHandle;
use trellara_storage::records::{FlowIdentity, FlowPart};
use trellara_storage::{Error, FlowName};
use xxhash_rust::xxh3::xxh3_64;

use crate::settings::FlowSettings;

/// The revision changes with every setting, and only with one: secrets show as such, and their files are
/// read again at each connect anyway.
pub(super) fn wanted(flows: &[FlowSettings]) -> Vec<WantedFlow> {
    let revision = |flow: &FlowSettings| format!("{:016x}", xxh3_64(format!("{flow:?}").as_bytes()));
    flows.iter().map(|flow| WantedFlow { flow: flow.name.clone(), revision: revision(flow) }).collect()
}

/// Every flow of the store that was not removed: what is not configured any more shows as detached.
pub(super) async fn stored(log: &LogHandle) -> Result<Vec<FlowName>, Error> {
    log.read(|store| {
        let mut names = Vec::new();
        for flow in flows::ids(store)? {
            let identity: Option<FlowIdentity> = flows::get(store, flow, FlowPart::Identity)?;
            names
                .extend(identity.filter(|identity| identity.removed.is_none()).map(|identity| identity.name));
        }
        Ok(names)
    })
    .await
}
