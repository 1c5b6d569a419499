//! Events of the apply half.

use super::super::effect::Effect;
use super::super::event::ApplyEnd;
use super::super::state::{Apply, Capture, Fault, Half, Holder, Loss, State, Trouble, Whole};
use super::{GIVE_UP_AFTER, Reaction, Refused, fail, fence, reaction, waiting};
use crate::failure::Class;

pub(super) fn claimed(state: &mut State) -> Result<(), Refused> {
    running(state)?;
    state.apply = Apply::Applying;
    Ok(())
}

pub(super) fn advanced(state: &mut State) -> Result<(), Refused> {
    running(state)?;
    state.apply = Apply::Applying;
    state.tries.apply = 0;
    Ok(())
}

pub(super) fn trouble(state: &mut State, fault: &Fault) -> Result<(), Refused> {
    running(state)?;
    let trouble = Trouble { fault: fault.clone(), waiting: false };
    state.apply = match fault.class {
        Class::Endpoint(endpoint) => Apply::Unavailable { endpoint, trouble },
        Class::Transient
        | Class::RowData
        | Class::SchemaContract
        | Class::Integrity
        | Class::Lineage
        | Class::Fence
        | Class::Defect
        | Class::Unknown => Apply::Retrying(trouble),
    };
    Ok(())
}

pub(super) fn drained(state: &mut State) -> Result<(), Refused> {
    let lost = match state.capture {
        Capture::LineageLost(_) => true,
        Capture::Connecting
        | Capture::Capturing
        | Capture::Retrying(_)
        | Capture::Unavailable { .. }
        | Capture::LogFull => false,
    };
    if !lost || state.apply != Apply::Applying {
        return Err(Refused::NotDrained);
    }
    state.apply = Apply::Drained;
    Ok(())
}

pub(super) fn decided(state: &mut State, evidence: &str) -> Result<(), Refused> {
    match state.whole {
        Whole::Removing { .. } => return Err(Refused::Removing),
        Whole::Detached => return Err(Refused::Detached),
        Whole::Active | Whole::Fenced(_) | Whole::Failed(_) => {}
    }
    match &state.apply {
        Apply::Quarantined(parked) if parked.id == evidence => {}
        Apply::Quarantined(parked) => {
            return Err(Refused::OtherQuarantine { standing: parked.id.clone() });
        }
        Apply::NotSeeded
        | Apply::Claiming
        | Apply::Applying
        | Apply::Retrying(_)
        | Apply::Unavailable { .. }
        | Apply::LineageLost(_)
        | Apply::Drained => return Err(Refused::NotQuarantined),
    }
    state.apply = Apply::Claiming;
    state.tries.apply = 0;
    Ok(())
}

pub(super) fn ended(state: &mut State, end: &ApplyEnd) -> Result<Option<Effect>, Refused> {
    match state.apply {
        Apply::Quarantined(_) | Apply::LineageLost(_) => return Err(Refused::NotRunning),
        Apply::NotSeeded
        | Apply::Claiming
        | Apply::Applying
        | Apply::Retrying(_)
        | Apply::Unavailable { .. }
        | Apply::Drained => {}
    }
    if state.waits(Half::Apply) {
        return Err(Refused::NotRunning);
    }
    match end {
        ApplyEnd::Stopped => rest(state),
        ApplyEnd::Quarantined(parked) => state.apply = Apply::Quarantined(parked.clone()),
        ApplyEnd::LineageLost(loss) => state.apply = Apply::LineageLost(loss.clone()),
        ApplyEnd::Fenced(holder) => fence(state, holder.clone()),
        ApplyEnd::Failed(fault) => return Ok(failed(state, fault)),
    }
    Ok(None)
}

fn failed(state: &mut State, fault: &Fault) -> Option<Effect> {
    match reaction(fault.class) {
        Reaction::Lose => {
            state.apply = Apply::LineageLost(Loss { code: fault.code, what: fault.what.clone() });
            None
        }
        Reaction::Fail => {
            fail(state, fault);
            None
        }
        Reaction::Fence => {
            fence(state, Holder::unknown(&fault.what));
            None
        }
        Reaction::Retry => retry(state, Apply::Retrying(waiting(fault))),
        Reaction::Wait(endpoint) => retry(state, Apply::Unavailable { endpoint, trouble: waiting(fault) }),
        Reaction::RetryThenFail if state.tries.apply + 1 >= GIVE_UP_AFTER => {
            fail(state, fault);
            None
        }
        Reaction::RetryThenFail => retry(state, Apply::Retrying(waiting(fault))),
    }
}

/// A failure of a task that was told to stop is of no interest: it starts afresh when it may.
fn retry(state: &mut State, trouble: Apply) -> Option<Effect> {
    if !state.wanted().apply {
        rest(state);
        return None;
    }
    state.apply = trouble;
    state.tries.apply = state.tries.apply.saturating_add(1);
    Some(Effect::RetryAfter(Half::Apply, state.tries.apply))
}

/// What the half is while nothing runs and nothing holds it back of its own.
pub(super) fn rest(state: &mut State) {
    match state.apply {
        Apply::Claiming | Apply::Applying | Apply::Retrying(_) | Apply::Unavailable { .. } => {
            state.apply = Apply::Claiming;
        }
        Apply::NotSeeded | Apply::Quarantined(_) | Apply::LineageLost(_) | Apply::Drained => {}
    }
}

pub(super) fn trouble_mut(apply: &mut Apply) -> Option<&mut Trouble> {
    match apply {
        Apply::Retrying(trouble) | Apply::Unavailable { trouble, .. } => Some(trouble),
        Apply::NotSeeded
        | Apply::Claiming
        | Apply::Applying
        | Apply::Quarantined(_)
        | Apply::LineageLost(_)
        | Apply::Drained => None,
    }
}

fn running(state: &State) -> Result<(), Refused> {
    if state.wanted().apply { Ok(()) } else { Err(Refused::NotRunning) }
}
