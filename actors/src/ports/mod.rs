//! What the cores need of the world. These traits are the only ones with one production implementation:
//! the simulation is the other.

mod clock;
mod log;
mod source;
mod target;
mod tasks;

pub use clock::Clock;
pub use log::FlowLog;
pub use source::{
    PublicationFacts, ReplicationStream, SlotFacts, SlotKind, SlotOrigin, SourceFacts, SourcePort,
    StreamEvent, WalStatus,
};
pub use target::{
    ApplyOutcome, Applying, Checkpoint, Claim, Claimed, Group, InitialCheckpoint, Member, TargetPort,
    TargetSession, Token,
};
pub use tasks::{
    FlowFactory, FlowTasks, LogBudget, NumberedLog, OpenFlow, RemoveOptions, RemovedPart, RemovedState,
    TaskContext,
};
