//! The fleet on one screen, and what is wrong with it.

use std::collections::BTreeMap;

use trellara_api::flow::{FlowLine, Phase};
use trellara_api::quarantine::QuarantineLine;
use trellara_api::status::{Diagnosis, Diagnostics, StoreUse, Summary};
use trellara_api::{Known, Time};

use super::{flow, quarantine};
use crate::admin::observe::Observed;
use crate::admin::settings_of;
use crate::config::Settings;
use crate::repair::Desk;

/// What a summary says beside its flows.
pub(in crate::admin) struct Around<'a> {
    pub(in crate::admin) settings: &'a Settings,
    pub(in crate::admin) desk: Desk<'a>,
    pub(in crate::admin) now: Time,
    pub(in crate::admin) started: Time,
    pub(in crate::admin) version: &'a str,
    pub(in crate::admin) free_bytes: Known<u64>,
}

pub(in crate::admin) fn line(observed: &Observed, around: &Around<'_>) -> FlowLine {
    let settings = settings_of(around.settings, &observed.status.flow);
    flow::line(&observed.status, settings, around.desk, around.now)
}

/// Worst phase first, then longest in it.
pub(in crate::admin) fn worst_first(lines: &mut [FlowLine]) {
    lines.sort_by(|one, other| {
        (one.phase, one.since, &one.flow).cmp(&(other.phase, other.since, &other.flow))
    });
}

pub(in crate::admin) fn summary(flows: &[Observed], around: &Around<'_>) -> Summary {
    let mut lines: Vec<FlowLine> = flows.iter().map(|observed| line(observed, around)).collect();
    worst_first(&mut lines);
    let mut phases: BTreeMap<Phase, u64> = BTreeMap::new();
    for line in &lines {
        *phases.entry(line.phase).or_default() += 1;
    }
    let mut open: Vec<QuarantineLine> = flows
        .iter()
        .flat_map(|observed| observed.open().map(|record| (record, &observed.status.flow)))
        .map(|(record, flow)| quarantine::line(record, flow, around.desk))
        .collect();
    open.sort_by_key(|record| record.at);
    let log_bytes = flows.iter().map(|observed| observed.status.log.used).sum();
    let lag_seconds = lines.iter().filter_map(|line| line.lag_seconds.value()).copied().fold(0.0, f64::max);
    Summary {
        at: around.now,
        instance: around.settings.instance.clone(),
        version: around.version.to_owned(),
        started: around.started,
        flows: lines.len() as u64,
        phases,
        lag_bytes: Known::Value(lines.iter().filter_map(|line| line.lag_bytes.value()).sum()),
        lag_seconds: Known::Value(lag_seconds),
        open_quarantine: open.len() as u64,
        oldest_quarantine: open.into_iter().next(),
        store: Known::Value(StoreUse { log_bytes, free_bytes: around.free_bytes.clone() }),
        partial: flows.iter().filter_map(Observed::gap).collect(),
        worst: lines.into_iter().filter(|line| line.phase != Phase::Streaming).take(Summary::WORST).collect(),
    }
}

pub(in crate::admin) fn diagnostics(flows: &[Observed], around: &Around<'_>) -> Diagnostics {
    let wrong = flows.iter().filter(|observed| flow::phase(observed.status.phase()) != Phase::Streaming);
    let mut diagnoses: Vec<Diagnosis> = wrong
        .map(|observed| Diagnosis {
            line: line(observed, around),
            conditions: flow::conditions(observed, around.desk),
            quarantine: observed
                .open()
                .map(|record| quarantine::line(record, &observed.status.flow, around.desk))
                .collect(),
            log: flow::log_use(&observed.status),
        })
        .collect();
    diagnoses.sort_by_key(|diagnosis| (diagnosis.line.phase, diagnosis.line.since));
    Diagnostics {
        at: around.now,
        streaming: (flows.len() - diagnoses.len()) as u64,
        flows: diagnoses,
        partial: flows.iter().filter_map(Observed::gap).collect(),
    }
}
