//! Status: the fleet in one screen, what is wrong, and what is proven.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::flow::{Condition, FlowLine, LogUse, Phase};
use crate::quarantine::QuarantineLine;
use crate::{Known, Time};

/// The store as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreUse {
    pub log_bytes: u64,
    pub free_bytes: Known<u64>,
}

/// `status --view summary`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub at: Time,
    pub instance: String,
    pub version: String,
    pub started: Time,
    pub flows: u64,
    pub phases: BTreeMap<Phase, u64>,
    /// Flows that are not streaming, worst first, then by lag; at most `Summary::WORST`.
    pub worst: Vec<FlowLine>,
    /// Over all flows.
    pub lag_bytes: Known<u64>,
    pub lag_seconds: Known<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_quarantine: Option<QuarantineLine>,
    pub open_quarantine: u64,
    pub store: Known<StoreUse>,
    /// What could not be asked, and why.
    #[serde(default)]
    pub partial: Vec<String>,
}

impl Summary {
    pub const WORST: usize = 10;
}

/// One flow that is not streaming.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    #[serde(flatten)]
    pub line: FlowLine,
    pub conditions: Vec<Condition>,
    pub quarantine: Vec<QuarantineLine>,
    pub log: Known<LogUse>,
}

/// `status --view diagnostics`: worst first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnostics {
    pub at: Time,
    pub flows: Vec<Diagnosis>,
    /// Flows looked at and found streaming.
    pub streaming: u64,
    #[serde(default)]
    pub partial: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    AtRisk,
    MissingEvidence,
    Verified,
}

impl Verdict {
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::AtRisk => "at risk",
            Verdict::MissingEvidence => "missing evidence",
            Verdict::Verified => "verified",
        }
    }
}

/// One claim about one flow, and what stands behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub check: String,
    pub verdict: Verdict,
    /// What was seen.
    pub text: String,
    /// Evidence id or position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// When it was seen last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowReport {
    pub flow: String,
    pub phase: Phase,
    pub checks: Vec<Check>,
}

/// `status --view report`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub at: Time,
    pub flows: Vec<FlowReport>,
    #[serde(default)]
    pub partial: Vec<String>,
}
