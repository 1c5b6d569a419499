//! Log retention: every few seconds, over every flow of the store, what has been applied for long enough
//! leaves the log. The storage keeper decides; this task gives it the time and carries its batches.

use std::time::Duration;

use trellara_actors::ports::Clock;
use trellara_storage::families::flows;
use trellara_storage::log::keeper::{Circumstances, Keeper, Retention};
use trellara_storage::log::{LogHandle, retention::RetainApplied};
use trellara_storage::{Error, FlowId, FlowName};

use super::clock::SystemClock;
use super::factory::EngineFactory;
use crate::settings::FlowSettings;

/// Short enough that a small budget does not stay full of what is applied.
const INTERVAL: Duration = Duration::from_secs(10);

/// Prunes until it is dropped. A flow whose log cannot be read keeps it, and does not keep the others
/// from theirs.
pub(super) async fn keep(factory: EngineFactory, log: LogHandle, clock: SystemClock) {
    let mut keeper = Keeper::new();
    loop {
        clock.sleep(INTERVAL).await;
        let flows = match present(&log).await {
            Ok(flows) => flows,
            Err(error) => {
                tracing::error!(%error, "log retention cannot read the flows");
                continue;
            }
        };
        for (id, name) in flows {
            let Some(settings) = factory.settings(&name) else { continue };
            // Without the slot's restart position no dedup entry may go: the source could send all of it again.
            let now = Circumstances {
                now: clock.now(),
                restart_lsn: factory.restart_lsn(&name),
                pinned_from: None,
            };
            let (back, passed) = pass(keeper, &log, id, &settings, now).await;
            keeper = back;
            if let Err(error) = passed {
                tracing::error!(flow = %name, %error, "log retention failed");
            }
        }
    }
}

/// The keeper goes to a reader thread and comes back.
async fn pass(
    mut keeper: Keeper,
    log: &LogHandle,
    flow: FlowId,
    settings: &FlowSettings,
    now: Circumstances,
) -> (Keeper, Result<(), Error>) {
    let applied = RetainApplied {
        time: settings.log_retain_applied,
        bytes: within_budget(settings.log_retain_applied_bytes, settings.log_max_bytes),
    };
    let retention = Retention { applied, dedup: settings.dedup_retain };
    let (keeper, passed) = log
        .read(move |store| {
            let passed = keeper.pass(store, flow, retention, now);
            (keeper, passed)
        })
        .await;
    let batch = match passed {
        Ok(Some(pass)) if !pass.batch.is_empty() => pass.batch,
        Ok(_) => return (keeper, Ok(())),
        Err(error) => return (keeper, Err(error)),
    };
    let written = match log.for_flow(flow).submit(batch).await {
        Ok(receipt) => receipt.await,
        Err(error) => Err(error),
    };
    (keeper, written)
}

/// What is applied never takes more than half of the flow's budget: capture would pause on a log in which
/// nothing is left to apply.
const fn within_budget(retained: u64, budget: u64) -> u64 {
    if retained < budget / 2 { retained } else { budget / 2 }
}

async fn present(log: &LogHandle) -> Result<Vec<(FlowId, FlowName)>, Error> {
    log.read(|store| {
        let flows = flows::all(store)?;
        let present = flows.into_iter().filter_map(|(flow, parts)| {
            let identity = parts.ok()?.identity;
            identity.removed.is_none().then_some((flow, identity.name))
        });
        Ok(present.collect())
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::within_budget;

    #[test]
    fn what_is_applied_never_fills_the_budget_of_a_flow() {
        assert_eq!(within_budget(1 << 30, 4 << 30), 1 << 30);
        assert_eq!(within_budget(1 << 30, 16 << 20), 8 << 20);
    }
}
