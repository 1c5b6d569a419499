//! The states of a flow: two machines that fail independently, and two switches over both.
//!
//! ```text
//! capture   Connecting -> Capturing <-> Retrying | Unavailable      (tried again for ever, with backoff)
//!                         Capturing  -> LogFull -> Connecting       (closed; again once apply made room)
//!                         any        -> LineageLost                 (terminal for this incarnation)
//! apply     NotSeeded -> Claiming -> Applying <-> Retrying | Unavailable
//!                                    Applying  -> Quarantined -> Claiming    (by a recorded decision only)
//!                                    any       -> LineageLost
//!                                    Applying  -> Drained           (capture lost its lineage, log is empty)
//! operator  Running <-> Paused(apply | all)
//! whole     Active -> Fenced | Failed -> Active                     (by restart only)
//!           any    -> Removing;  any <-> Detached
//! ```
//! A state owns its phase's data; the fieldless twin names it in status, metrics and records. What is to
//! run follows from the state alone (`State::wanted`), so no transition can forget to start or stop a task.
//! The one danger: a state that lets a task run which must not, hence one place that says so.

use serde::{Deserialize, Serialize};
use trellara_storage::records::{FailureDetail, QuarantineRecord};
use trellara_storage::{Timestamp, TransactionDigest, TransactionId};

use crate::failure::{Class, Code, Endpoint, Failure};
use crate::ports::Checkpoint;

/// A failure as status and events show it: no row values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub class: Class,
    pub code: Code,
    pub sqlstate: Option<String>,
    pub constraint: Option<String>,
    /// One line for people.
    pub what: String,
}

impl Fault {
    pub fn new(class: Class, code: Code, what: impl Into<String>) -> Self {
        Self { class, code, sqlstate: None, constraint: None, what: what.into() }
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        let FailureDetail { sqlstate, constraint, .. } = *failure.detail;
        Self { class: failure.class, code: failure.code, sqlstate, constraint, what: failure.summary }
    }
}

/// A lineage that is gone (I8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    pub code: Code,
    pub what: String,
}

/// A failure that is being waited out or tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub fault: Fault,
    /// The task ended and its next start is scheduled; otherwise a task is at it.
    pub waiting: bool,
}

/// Pointer to the evidence of the transaction that apply stands before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parked {
    /// Short id (`Q-7F3K`).
    pub id: String,
    pub transaction: TransactionId,
    pub digest: TransactionDigest,
    pub at: Timestamp,
    /// Class, stable code, SQLSTATE and constraint as the evidence has them; no row values.
    pub class: String,
    pub code: String,
    pub sqlstate: Option<String>,
    pub constraint: Option<String>,
    pub table: Option<String>,
}

impl From<&QuarantineRecord> for Parked {
    fn from(record: &QuarantineRecord) -> Self {
        let FailureDetail { class, code, sqlstate, constraint, schema, table, .. } = &record.failure;
        let table = table.as_ref().map(|table| match schema {
            Some(schema) => format!("{schema}.{table}"),
            None => table.clone(),
        });
        Self {
            id: record.id.clone(),
            transaction: record.transaction,
            digest: record.digest,
            at: record.at,
            class: class.clone(),
            code: code.clone(),
            sqlstate: sqlstate.clone(),
            constraint: constraint.clone(),
            table,
        }
    }
}

/// Who applies this flow instead (I11).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Configured name and host of the other engine.
    pub name: String,
    pub instance: String,
    pub generation: u64,
}

impl Holder {
    /// Known from an error only.
    pub fn unknown(what: &str) -> Self {
        Self { name: what.to_owned(), instance: String::new(), generation: 0 }
    }
}

impl From<&Checkpoint> for Holder {
    fn from(checkpoint: &Checkpoint) -> Self {
        Self {
            name: checkpoint.holder.clone(),
            instance: checkpoint.token.instance.to_string(),
            generation: checkpoint.token.generation,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Capture {
    /// A task is connecting, or will once it may run.
    Connecting,
    Capturing,
    Retrying(Trouble),
    Unavailable {
        endpoint: Endpoint,
        trouble: Trouble,
    },
    /// The log budget is used up; the connection is closed.
    LogFull,
    LineageLost(Loss),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Apply {
    /// No incarnation is durable here yet.
    NotSeeded,
    /// The checkpoint is being claimed, or will be once the task may run.
    Claiming,
    Applying,
    Retrying(Trouble),
    Unavailable {
        endpoint: Endpoint,
        trouble: Trouble,
    },
    Quarantined(Box<Parked>),
    LineageLost(Loss),
    /// Capture lost its lineage and the log holds nothing more to apply.
    Drained,
}

/// What a pause holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseScope {
    /// The log keeps filling.
    Apply,
    /// Capture closes its connection as well; the slot holds the WAL.
    All,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    pub scope: PauseScope,
    pub who: String,
    pub why: String,
    pub since: Timestamp,
    /// None until someone resumes.
    pub until: Option<Timestamp>,
}

/// The operator's switch; outlives restarts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    Running,
    Paused(Pause),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whole {
    Active,
    Fenced(Holder),
    Failed(Fault),
    Removing {
        keep_slot: bool,
    },
    /// Not configured any more; nothing runs, nothing was dropped.
    Detached,
}

/// Consecutive failures of each half without progress in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tries {
    pub capture: u32,
    pub apply: u32,
}

/// Which machine of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Half {
    Capture,
    Apply,
}

/// Which tasks the state wants to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub capture: bool,
    pub apply: bool,
}

impl Wanted {
    pub fn of(self, half: Half) -> bool {
        match half {
            Half::Capture => self.capture,
            Half::Apply => self.apply,
        }
    }
}

/// One flow, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub capture: Capture,
    pub apply: Apply,
    pub operator: Operator,
    pub whole: Whole,
    pub tries: Tries,
}

impl State {
    /// A flow that nothing is known of but whether an incarnation is durable here.
    pub fn new(seeded: bool) -> Self {
        Self {
            capture: Capture::Connecting,
            apply: if seeded { Apply::Claiming } else { Apply::NotSeeded },
            operator: Operator::Running,
            whole: Whole::Active,
            tries: Tries::default(),
        }
    }

    /// What is to run: the only place that says so.
    pub fn wanted(&self) -> Wanted {
        if self.whole != Whole::Active {
            return Wanted::default();
        }
        let (capture_may, apply_may) = match &self.operator {
            Operator::Running => (true, true),
            Operator::Paused(Pause { scope: PauseScope::Apply, .. }) => (true, false),
            Operator::Paused(Pause { scope: PauseScope::All, .. }) => (false, false),
        };
        Wanted { capture: capture_may && self.capture.runs(), apply: apply_may && self.apply.runs() }
    }

    pub fn pause(&self) -> Option<&Pause> {
        match &self.operator {
            Operator::Running => None,
            Operator::Paused(pause) => Some(pause),
        }
    }

    /// The scheduled restart that a half waits for, if it does.
    pub fn waits(&self, half: Half) -> bool {
        let trouble = match half {
            Half::Capture => self.capture.trouble(),
            Half::Apply => self.apply.trouble(),
        };
        trouble.is_some_and(|trouble| trouble.waiting)
    }
}

impl Capture {
    fn runs(&self) -> bool {
        match self {
            Capture::Connecting | Capture::Capturing => true,
            Capture::Retrying(trouble) | Capture::Unavailable { trouble, .. } => !trouble.waiting,
            Capture::LogFull | Capture::LineageLost(_) => false,
        }
    }

    pub fn trouble(&self) -> Option<&Trouble> {
        match self {
            Capture::Retrying(trouble) | Capture::Unavailable { trouble, .. } => Some(trouble),
            Capture::Connecting | Capture::Capturing | Capture::LogFull | Capture::LineageLost(_) => None,
        }
    }
}

impl Apply {
    fn runs(&self) -> bool {
        match self {
            Apply::NotSeeded | Apply::Claiming | Apply::Applying => true,
            Apply::Retrying(trouble) | Apply::Unavailable { trouble, .. } => !trouble.waiting,
            Apply::Quarantined(_) | Apply::LineageLost(_) | Apply::Drained => false,
        }
    }

    pub fn trouble(&self) -> Option<&Trouble> {
        match self {
            Apply::Retrying(trouble) | Apply::Unavailable { trouble, .. } => Some(trouble),
            Apply::NotSeeded
            | Apply::Claiming
            | Apply::Applying
            | Apply::Quarantined(_)
            | Apply::LineageLost(_)
            | Apply::Drained => None,
        }
    }
}
