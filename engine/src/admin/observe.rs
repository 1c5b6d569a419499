//! What routes read of the store: evidence, events, and the views that the repair plan is made from.

use std::sync::Arc;

use trellara_actors::flow::FlowStatus;
use trellara_storage::families::{events, quarantine};
use trellara_storage::records::{EventRecord, QuarantineRecord};
use trellara_storage::{Error, FlowId};

use super::AdminState;

/// A flow with its evidence, oldest first.
#[derive(Debug)]
pub(super) struct Observed {
    pub(super) status: Arc<FlowStatus>,
    /// An error says why there is none to see.
    pub(super) records: Result<Vec<QuarantineRecord>, Error>,
}

impl Observed {
    pub(super) fn records(&self) -> &[QuarantineRecord] {
        self.records.as_deref().unwrap_or_default()
    }

    pub(super) fn open(&self) -> impl Iterator<Item = &QuarantineRecord> {
        self.records().iter().filter(|record| super::view::quarantine::state(record.state).is_open())
    }

    /// What is missing, for people.
    pub(super) fn gap(&self) -> Option<String> {
        let error = self.records.as_ref().err()?;
        Some(format!("evidence of {} cannot be read: {error}", self.status.flow))
    }
}

impl AdminState {
    pub(super) async fn observe(&self, flows: Vec<Arc<FlowStatus>>) -> Vec<Observed> {
        let ids: Vec<Option<FlowId>> = flows.iter().map(|status| status.id).collect();
        let records = self
            .log
            .read(move |store| {
                let of_flow = |id: &Option<FlowId>| match id {
                    Some(id) => quarantine::of_flow(store, *id),
                    None => Ok(Vec::new()),
                };
                ids.iter().map(of_flow).collect::<Vec<_>>()
            })
            .await;
        flows.into_iter().zip(records).map(|(status, records)| Observed { status, records }).collect()
    }

    /// Newest first; none before the flow was opened for the first time.
    pub(super) async fn events(
        &self,
        id: Option<FlowId>,
        limit: usize,
    ) -> Result<Vec<(u64, EventRecord)>, Error> {
        match id {
            Some(id) => self.log.read(move |store| events::newest(store, id, limit)).await,
            None => Ok(Vec::new()),
        }
    }
}
