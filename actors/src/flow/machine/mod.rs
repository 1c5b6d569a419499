//! `on`: the only way from one state of a flow to the next. Pure; a refusal changes nothing.
//!
//! Capture and apply fail independently: no event of one half touches the other's state, with two
//! exceptions that the design names (a known lineage ends `NotSeeded`, and an apply that emptied the log
//! of a lost lineage is `Drained`). A fence, a defect and a removal stop both through `Whole`.

mod apply;
mod capture;
mod operator;
#[cfg(test)]
mod tests;

use super::effect::{Effect, Step, difference};
use super::event::Event;
use super::state::{Fault, Half, Holder, State, Trouble, Whole};
use crate::failure::{Class, Endpoint};

/// Consecutive failures of class unknown, without progress between them, after which a flow is Failed.
pub const GIVE_UP_AFTER: u32 = 10;

/// Why an event may not happen now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("no such task is running")]
    NotRunning,
    #[error("no restart is scheduled")]
    NotWaiting,
    #[error("the flow is not paused")]
    NotPaused,
    #[error("the flow stands before no quarantined transaction")]
    NotQuarantined,
    #[error("the flow stands before {standing}, resolve that first")]
    OtherQuarantine { standing: String },
    #[error("the flow is being removed")]
    Removing,
    #[error("the flow is not configured")]
    Detached,
    #[error("the flow is configured")]
    NotDetached,
    #[error("the log is not full")]
    NotFull,
    #[error("there is still something to apply")]
    NotDrained,
}

/// # Errors
/// `Refused` when the event is illegal in this state; then nothing may be done.
pub fn on(state: &State, event: &Event) -> Result<Step, Refused> {
    let mut next = state.clone();
    let mut retry = None;
    match event {
        Event::LineageKnown => capture::lineage_known(&mut next)?,
        Event::Capturing => capture::capturing(&mut next)?,
        Event::CaptureAdvanced => capture::advanced(&mut next)?,
        Event::CaptureEnded(end) => retry = capture::ended(&mut next, end)?,
        Event::RoomAgain => capture::room_again(&mut next)?,
        Event::Claimed => apply::claimed(&mut next)?,
        Event::ApplyAdvanced => apply::advanced(&mut next)?,
        Event::ApplyTrouble(fault) => apply::trouble(&mut next, fault)?,
        Event::ApplyEnded(end) => retry = apply::ended(&mut next, end)?,
        Event::Drained => apply::drained(&mut next)?,
        Event::RetryDue(half) => retry_due(&mut next, *half)?,
        Event::Pause(pause) => operator::pause(&mut next, pause)?,
        Event::Resume | Event::PauseRanOut => operator::resume(&mut next)?,
        Event::Decided { evidence } => apply::decided(&mut next, evidence)?,
        Event::Restart => operator::restart(&mut next)?,
        Event::Remove { keep_slot } => remove(&mut next, *keep_slot),
        Event::Detach => operator::detach(&mut next)?,
        Event::Attach => operator::attach(&mut next)?,
        Event::GaveUp(fault) => fail(&mut next, fault),
    }
    let effects = effects(state, &next, event, retry);
    Ok(Step { next, effects })
}

/// Of a half whose task has just ended there is nothing to stop, and what still is to run is started anew.
fn effects(before: &State, next: &State, event: &Event, retry: Option<Effect>) -> Vec<Effect> {
    let ended = match event {
        Event::CaptureEnded(_) => Some(Half::Capture),
        Event::ApplyEnded(_) => Some(Half::Apply),
        Event::LineageKnown
        | Event::Capturing
        | Event::CaptureAdvanced
        | Event::RoomAgain
        | Event::Claimed
        | Event::ApplyAdvanced
        | Event::ApplyTrouble(_)
        | Event::Drained
        | Event::RetryDue(_)
        | Event::Pause(_)
        | Event::PauseRanOut
        | Event::Resume
        | Event::Decided { .. }
        | Event::Restart
        | Event::Remove { .. }
        | Event::Detach
        | Event::Attach
        | Event::GaveUp(_) => None,
    };
    let mut effects = difference(before, next);
    if let Some(half) = ended {
        effects.retain(|effect| *effect != Effect::Stop(half) && *effect != Effect::Start(half));
        effects.extend(next.wanted().of(half).then_some(Effect::Start(half)));
    }
    effects.extend(retry);
    effects
}

fn retry_due(state: &mut State, half: Half) -> Result<(), Refused> {
    let trouble = match half {
        Half::Capture => capture::trouble_mut(&mut state.capture),
        Half::Apply => apply::trouble_mut(&mut state.apply),
    };
    match trouble {
        Some(trouble) if trouble.waiting => trouble.waiting = false,
        Some(_) | None => return Err(Refused::NotWaiting),
    }
    Ok(())
}

/// What a failed task means for its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaction {
    Retry,
    /// Tried again until the give-up rule says enough.
    RetryThenFail,
    /// The other side is away: tried again for ever.
    Wait(Endpoint),
    Lose,
    Fence,
    Fail,
}

/// The table. Row data and contract failures are quarantined by the apply task itself; one that arrives
/// here came from a place that cannot quarantine and is as good as unknown.
fn reaction(class: Class) -> Reaction {
    match class {
        Class::Transient => Reaction::Retry,
        Class::Endpoint(endpoint) => Reaction::Wait(endpoint),
        Class::RowData | Class::SchemaContract | Class::Unknown => Reaction::RetryThenFail,
        Class::Lineage => Reaction::Lose,
        Class::Fence => Reaction::Fence,
        Class::Integrity | Class::Defect => Reaction::Fail,
    }
}

fn fail(state: &mut State, fault: &Fault) {
    end(state, Whole::Failed(fault.clone()));
}

fn fence(state: &mut State, holder: Holder) {
    end(state, Whole::Fenced(holder));
}

/// A removed, detached, fenced or already failed flow stays what it is.
fn end(state: &mut State, whole: Whole) {
    if state.whole == Whole::Active {
        state.whole = whole;
    }
    rest(state);
}

/// Neither half tries anything any more; what holds it back of its own stays.
fn rest(state: &mut State) {
    capture::rest(state);
    apply::rest(state);
}

fn remove(state: &mut State, keep_slot: bool) {
    state.whole = Whole::Removing { keep_slot };
    rest(state);
}

fn waiting(fault: &Fault) -> Trouble {
    Trouble { fault: fault.clone(), waiting: true }
}
