//! Prometheus metrics: the core set of every flow, read off the fleet's status once a second, and the
//! fleet-wide counters.
//!
//! Labels are `source_id` and `dataset_id` only. Series of removed flows expire by themselves.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use metrics::{Unit, describe_counter, describe_gauge, gauge, counter};
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder};
use metrics_exporter_prometheus::MetricKindMask;
use trellara_actors::fleet::FleetView;
use trellara_actors::flow::{FlowStatus, Phase};
use trellara_actors::ports::Clock;
use trellara_storage::Timestamp;

use crate::runtime::SystemClock;

/// How often the series follow the status.
const INTERVAL: Duration = Duration::from_secs(1);
/// Series that nobody renewed for this long are gone: the flow was removed.
const EXPIRY: Duration = Duration::from_secs(60);

/// Starts the listener. To be called on the runtime that is to serve it.
///
/// # Errors
/// The address cannot be bound.
pub fn listen(address: SocketAddr) -> Result<(), BuildError> {
    PrometheusBuilder::new()
        .with_http_listener(address)
        .idle_timeout(MetricKindMask::ALL, Some(EXPIRY))
        .install()?;
    describe();
    Ok(())
}

/// Renews every flow's series until it is dropped.
pub async fn follow(fleet: Arc<FleetView>, clock: SystemClock, per_flow: bool) {
    loop {
        let flows = fleet.all();
        publish_fleet(&flows);
        if per_flow {
            let now = clock.now();
            flows.iter().for_each(|status| publish_flow(status, now));
        }
        clock.sleep(INTERVAL).await;
    }
}

fn describe() {
    describe_gauge!("trellara_flows", "Flows by phase.");
    describe_gauge!("trellara_flow_phase", "Phase of the flow as a number, 1 is the worst, 14 is streaming.");
    describe_gauge!("trellara_flow_lag_bytes", Unit::Bytes, "Source WAL that is received and not yet applied.");
    describe_gauge!(
        "trellara_flow_lag_seconds",
        Unit::Seconds,
        "Age of the newest applied transaction's commit while there is something to apply, else 0."
    );
    describe_gauge!("trellara_flow_source_age_seconds", Unit::Seconds, "Time since the source was heard.");
    describe_gauge!("trellara_flow_target_age_seconds", Unit::Seconds, "Time since the target was heard.");
    describe_gauge!(
        "trellara_flow_heartbeat_age_seconds",
        Unit::Seconds,
        "Time since the commit of the newest heartbeat that came back through the stream."
    );
    describe_gauge!("trellara_flow_quarantine_open", "1 while a transaction of the flow is quarantined.");
    describe_gauge!("trellara_flow_log_bytes", Unit::Bytes, "Bytes of the flow in the durable log.");
    describe_gauge!("trellara_flow_log_max_bytes", Unit::Bytes, "Budget of the flow in the durable log.");
    describe_counter!("trellara_flow_captured_transactions", "Transactions made durable.");
    describe_counter!("trellara_flow_applied_transactions", "Transactions applied at the target.");
    describe_counter!("trellara_flow_failures", "Failures of the flow's connections and of its work.");
}

fn publish_fleet(flows: &[Arc<FlowStatus>]) {
    for phase in Phase::ORDER {
        let count = flows.iter().filter(|status| status.phase() == phase).count();
        gauge!("trellara_flows", "phase" => phase.name()).set(as_f64(count as u64));
    }
}
