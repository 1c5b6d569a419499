//! The phase part of a flow in the store: what survives the process.
//!
//! What may only live in memory cannot be written here: a running connection, a retry in progress and an
//! unreachable server are found out anew at every start. A parked transaction is named, so that it shows
//! before the target was ever reached; the evidence itself stays the authority.

use serde::{Deserialize, Serialize};
use trellara_storage::families::{default, events, flows};
use trellara_storage::records::{EventRecord, FlowPart, Lineage};
use trellara_storage::{Batch, Error, FlowId, Progress, Store, Timestamp};

use super::phase::Phase;
use super::state::{Apply, Capture, Fault, Holder, Loss, Operator, Parked, State, Whole};
use crate::failure::{Class, Code, Endpoint};

/// The value of `FlowPart::Phase`; written together with the event that explains it, by the flow alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseRecord {
    /// As it was when this was written; for people who read the store.
    pub phase: Phase,
    pub at: Timestamp,
    pub capture: StoredCapture,
    pub apply: StoredApply,
    pub operator: Operator,
    pub whole: StoredWhole,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredCapture {
    Open,
    LineageLost(StoredLoss),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredApply {
    Open,
    Quarantined(Box<Parked>),
    LineageLost(StoredLoss),
    Drained,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredWhole {
    Active,
    Fenced(Holder),
    Failed(StoredFault),
    Removing { keep_slot: bool },
    Detached,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredLoss {
    #[serde(with = "stored_code")]
    code: Code,
    what: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFault {
    #[serde(with = "stored_class")]
    class: Class,
    #[serde(with = "stored_code")]
    code: Code,
    sqlstate: Option<String>,
    constraint: Option<String>,
    what: String,
}

/// Everything that a flow starts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFlow {
    pub state: State,
    pub lineage: Option<Lineage>,
    /// The store was recovered: until the lineage is judged again, it may not be acted on.
    pub recovered: bool,
    pub durable: Progress,
    pub applied: Progress,
    /// Number of the newest event, zero for none.
    pub newest_event: u64,
}

impl PhaseRecord {
    pub fn of(state: &State, phase: Phase, at: Timestamp) -> Self {
        Self {
            phase,
            at,
            capture: match &state.capture {
                Capture::Connecting
                | Capture::Capturing
                | Capture::Retrying(_)
                | Capture::Unavailable { .. }
                | Capture::LogFull => StoredCapture::Open,
                Capture::LineageLost(loss) => StoredCapture::LineageLost(loss.into()),
            },
            apply: match &state.apply {
                Apply::NotSeeded
                | Apply::Claiming
                | Apply::Applying
                | Apply::Retrying(_)
                | Apply::Unavailable { .. } => StoredApply::Open,
                Apply::Quarantined(parked) => StoredApply::Quarantined(parked.clone()),
                Apply::LineageLost(loss) => StoredApply::LineageLost(loss.into()),
                Apply::Drained => StoredApply::Drained,
            },
            operator: state.operator.clone(),
            whole: match &state.whole {
                Whole::Active => StoredWhole::Active,
                Whole::Fenced(holder) => StoredWhole::Fenced(holder.clone()),
                Whole::Failed(fault) => StoredWhole::Failed(fault.into()),
                Whole::Removing { keep_slot } => StoredWhole::Removing { keep_slot: *keep_slot },
                Whole::Detached => StoredWhole::Detached,
            },
        }
    }

    /// A new generation would start in the same state from either.
    pub fn same_state(&self, other: &Self) -> bool {
        (&self.capture, &self.apply, &self.operator, &self.whole)
            == (&other.capture, &other.apply, &other.operator, &other.whole)
    }

    /// The state that a new generation starts in.
    pub fn state(self, seeded: bool) -> State {
        let fresh = State::new(seeded);
        State {
            capture: match self.capture {
                StoredCapture::Open => fresh.capture,
                StoredCapture::LineageLost(loss) => Capture::LineageLost(loss.into()),
            },
            apply: match self.apply {
                StoredApply::Open => fresh.apply,
                StoredApply::Quarantined(parked) => Apply::Quarantined(parked),
                StoredApply::LineageLost(loss) => Apply::LineageLost(loss.into()),
                StoredApply::Drained => Apply::Drained,
            },
            operator: self.operator,
            whole: match self.whole {
                StoredWhole::Active => Whole::Active,
                StoredWhole::Fenced(holder) => Whole::Fenced(holder),
                StoredWhole::Failed(fault) => Whole::Failed(fault.into()),
                StoredWhole::Removing { keep_slot } => Whole::Removing { keep_slot },
                StoredWhole::Detached => Whole::Detached,
            },
            tries: fresh.tries,
        }
    }
}

/// Reads what the flow starts from; a flow without a phase part is a new one.
///
/// # Errors
/// `ReadFailed`, `Corruption`.
pub fn load(store: &dyn Store, flow: FlowId) -> Result<StoredFlow, Error> {
    let lineage: Option<Lineage> = flows::get(store, flow, FlowPart::Lineage)?;
    let record: Option<PhaseRecord> = flows::get(store, flow, FlowPart::Phase)?;
    let seeded = lineage.is_some();
    Ok(StoredFlow {
        state: record.map_or_else(|| State::new(seeded), |record| record.state(seeded)),
        lineage,
        recovered: default::mark(store, flow)?.is_some(),
        durable: flows::get(store, flow, FlowPart::Durable)?.unwrap_or_default(),
        applied: flows::get(store, flow, FlowPart::Applied)?.unwrap_or_default(),
        newest_event: events::newest(store, flow, 1)?.first().map_or(0, |(sequence, _)| *sequence),
    })
}

/// One state change and what explains it (I7).
pub fn put(batch: &mut Batch, flow: FlowId, sequence: u64, event: &EventRecord, phase: &PhaseRecord) {
    events::put(batch, flow, sequence, event);
    flows::put(batch, flow, FlowPart::Phase, phase);
}

impl From<&Loss> for StoredLoss {
    fn from(loss: &Loss) -> Self {
        Self { code: loss.code, what: loss.what.clone() }
    }
}

impl From<StoredLoss> for Loss {
    fn from(loss: StoredLoss) -> Self {
        Self { code: loss.code, what: loss.what }
    }
}

impl From<&Fault> for StoredFault {
    fn from(fault: &Fault) -> Self {
        let Fault { class, code, sqlstate, constraint, what } = fault.clone();
        Self { class, code, sqlstate, constraint, what }
    }
}

impl From<StoredFault> for Fault {
    fn from(fault: StoredFault) -> Self {
        let StoredFault { class, code, sqlstate, constraint, what } = fault;
        Self { class, code, sqlstate, constraint, what }
    }
}

mod stored_code {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use super::Code;

    pub(super) fn serialize<S: Serializer>(code: &Code, serializer: S) -> Result<S::Ok, S::Error> {
        code.number().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Code, D::Error> {
        let number = u16::deserialize(deserializer)?;
        let known = Code::ALL.iter().find(|code| code.number() == number);
        known.copied().ok_or_else(|| D::Error::custom(format!("unknown code {number}")))
    }
}

mod stored_class {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use super::{Class, Endpoint};

    const ALL: [Class; 10] = [
        Class::Transient,
        Class::Endpoint(Endpoint::Source),
        Class::Endpoint(Endpoint::Target),
        Class::RowData,
        Class::SchemaContract,
        Class::Integrity,
        Class::Lineage,
        Class::Fence,
        Class::Defect,
        Class::Unknown,
    ];

    /// `Class::name` does not tell the endpoints apart.
    fn name(class: Class) -> &'static str {
        match class {
            Class::Endpoint(Endpoint::Source) => "endpoint_source",
            Class::Endpoint(Endpoint::Target) => "endpoint_target",
            Class::Transient
            | Class::RowData
            | Class::SchemaContract
            | Class::Integrity
            | Class::Lineage
            | Class::Fence
            | Class::Defect
            | Class::Unknown => class.name(),
        }
    }

    pub(super) fn serialize<S: Serializer>(class: &Class, serializer: S) -> Result<S::Ok, S::Error> {
        name(*class).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Class, D::Error> {
        let text = String::deserialize(deserializer)?;
        let known = ALL.iter().find(|class| name(**class) == text);
        known.copied().ok_or_else(|| D::Error::custom(format!("unknown failure class {text}")))
    }
}
