//! Prometheus metrics: the core set of every flow, read off the fleet's status once a second, and the
//! fleet-wide counters.
//!
//! Labels are `source_id` and `dataset_id` only. Series of removed flows expire by themselves.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder};
use metrics_util::MetricKindMask;
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
pub async fn follow(fleet: FleetView, clock: SystemClock, per_flow: bool) {
    loop {
        let flows = fleet.flows();
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
    describe_gauge!(
        "trellara_flow_lag_bytes",
        Unit::Bytes,
        "Source WAL that is received and not yet applied."
    );
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
    describe_counter!("trellara_flow_captured_transactions_total", "Transactions made durable.");
    describe_counter!("trellara_flow_applied_transactions_total", "Transactions applied at the target.");
    describe_counter!("trellara_flow_failures_total", "Failures of the flow's connections and of its work.");
}

fn publish_fleet(flows: &[Arc<FlowStatus>]) {
    for phase in Phase::ORDER {
        let count = flows.iter().filter(|status| status.phase() == phase).count();
        gauge!("trellara_flows", "phase" => phase.name()).set(as_f64(count as u64));
    }
}

fn publish_flow(status: &FlowStatus, now: Timestamp) {
    let labels =
        [("source_id", status.flow.source().to_owned()), ("dataset_id", status.flow.dataset().to_owned())];
    let set = |name: &'static str, value: f64| gauge!(name, &labels).set(value);
    set("trellara_flow_phase", f64::from(status.phase().number()));
    set("trellara_flow_lag_bytes", as_f64(status.durable.position.bytes_since(status.applied.position)));
    set("trellara_flow_lag_seconds", lag(status, now));
    set("trellara_flow_quarantine_open", if status.quarantine.is_some() { 1.0 } else { 0.0 });
    set("trellara_flow_log_bytes", as_f64(status.log.used));
    set("trellara_flow_log_max_bytes", as_f64(status.log.max));
    let ages = [
        ("trellara_flow_source_age_seconds", status.source_seen),
        ("trellara_flow_target_age_seconds", status.target_seen),
        ("trellara_flow_heartbeat_age_seconds", status.heartbeat),
    ];
    for (name, seen) in ages {
        if let Some(seen) = seen {
            set(name, seconds(now, seen));
        }
    }
    let count = |name: &'static str, value: u64| counter!(name, &labels).absolute(value);
    count("trellara_flow_captured_transactions_total", status.counters.captured_transactions);
    count("trellara_flow_applied_transactions_total", status.counters.applied_transactions);
    count("trellara_flow_failures_total", status.counters.capture_failures + status.counters.apply_failures);
}

/// How old the target's content is; zero when there is nothing to apply.
fn lag(status: &FlowStatus, now: Timestamp) -> f64 {
    match status.applied_commit_time {
        Some(applied) if status.durable.commit_lsn > status.applied.commit_lsn => seconds(now, applied),
        Some(_) | None => 0.0,
    }
}

fn seconds(now: Timestamp, then: Timestamp) -> f64 {
    as_f64(now.micros_since(then)) / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "a gauge need not be exact beyond 2^53")]
fn as_f64(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests state what must hold")]

    use std::net::{Ipv4Addr, TcpListener};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use trellara_actors::flow::Condition;
    use trellara_actors::flow::phase::Reason;
    use trellara_storage::{FlowName, Lsn, Progress};

    use super::*;

    fn streaming(name: &str) -> FlowStatus {
        let reason = Reason {
            phase: Phase::Streaming,
            class: None,
            code: None,
            sqlstate: None,
            constraint: None,
            cause: String::new(),
            evidence: None,
        };
        let name: FlowName = name.parse().unwrap();
        let mut status = FlowStatus::bare(name, 1, Condition { reason, since: Timestamp::default() });
        let progress = |lsn| Progress { commit_lsn: Lsn::new(lsn), position: Lsn::new(lsn) };
        status.durable = progress(1_500);
        status.applied = progress(1_000);
        status.applied_commit_time = Some(Timestamp::from_unix_micros(10_000_000));
        status.counters.applied_transactions = 42;
        status
    }

    async fn scrape(address: SocketAddr) -> String {
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn the_core_set_of_a_flow_is_scraped_over_http() {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        listen(free).unwrap();
        let status = Arc::new(streaming("store-0001:retail"));
        publish_fleet(&[Arc::clone(&status)]);
        publish_flow(&status, Timestamp::from_unix_micros(12_500_000));

        let answer = scrape(free).await;
        let labels = r#"{source_id="store-0001",dataset_id="retail"}"#;
        for (series, value) in [
            ("trellara_flow_phase", "14"),
            ("trellara_flow_lag_bytes", "500"),
            ("trellara_flow_lag_seconds", "2.5"),
            ("trellara_flow_quarantine_open", "0"),
            ("trellara_flow_applied_transactions_total", "42"),
        ] {
            assert!(answer.contains(&format!("\n{series}{labels} {value}\n")), "{series} in {answer}");
        }
        assert!(answer.contains("\ntrellara_flows{phase=\"streaming\"} 1\n"), "{answer}");
        assert!(answer.contains("# HELP trellara_flow_lag_seconds "), "{answer}");
    }
}
