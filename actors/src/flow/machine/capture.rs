//! Events of the capture half.

use super::super::effect::Effect;
use super::super::event::CaptureEnd;
use super::super::state::{Apply, Capture, Fault, Half, Holder, Loss, State, Trouble};
use super::{GIVE_UP_AFTER, Reaction, Refused, fail, fence, reaction, waiting};

pub(super) fn lineage_known(state: &mut State) -> Result<(), Refused> {
    running(state)?;
    if state.apply == Apply::NotSeeded {
        state.apply = Apply::Claiming;
    }
    Ok(())
}

pub(super) fn capturing(state: &mut State) -> Result<(), Refused> {
    running(state)?;
    state.capture = Capture::Capturing;
    Ok(())
}

pub(super) fn advanced(state: &mut State) -> Result<(), Refused> {
    running(state)?;
    state.tries.capture = 0;
    Ok(())
}

pub(super) fn room_again(state: &mut State) -> Result<(), Refused> {
    if state.capture != Capture::LogFull {
        return Err(Refused::NotFull);
    }
    state.capture = Capture::Connecting;
    Ok(())
}

pub(super) fn ended(state: &mut State, end: &CaptureEnd) -> Result<Option<Effect>, Refused> {
    match state.capture {
        Capture::LogFull | Capture::LineageLost(_) => return Err(Refused::NotRunning),
        Capture::Connecting | Capture::Capturing | Capture::Retrying(_) | Capture::Unavailable { .. } => {}
    }
    if state.waits(Half::Capture) {
        return Err(Refused::NotRunning);
    }
    match end {
        CaptureEnd::Stopped => rest(state),
        CaptureEnd::LogFull => state.capture = Capture::LogFull,
        CaptureEnd::LineageLost(loss) => state.capture = Capture::LineageLost(loss.clone()),
        CaptureEnd::Failed(fault) => return Ok(failed(state, fault)),
    }
    Ok(None)
}

fn failed(state: &mut State, fault: &Fault) -> Option<Effect> {
    match reaction(fault.class) {
        Reaction::Lose => {
            state.capture = Capture::LineageLost(Loss { code: fault.code, what: fault.what.clone() });
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
        Reaction::Retry => retry(state, Capture::Retrying(waiting(fault))),
        Reaction::Wait(endpoint) => retry(state, Capture::Unavailable { endpoint, trouble: waiting(fault) }),
        Reaction::RetryThenFail if state.tries.capture + 1 >= GIVE_UP_AFTER => {
            fail(state, fault);
            None
        }
        Reaction::RetryThenFail => retry(state, Capture::Retrying(waiting(fault))),
    }
}

/// A failure of a task that was told to stop is of no interest: it starts afresh when it may.
fn retry(state: &mut State, trouble: Capture) -> Option<Effect> {
    if !state.wanted().capture {
        rest(state);
        return None;
    }
    state.capture = trouble;
    state.tries.capture = state.tries.capture.saturating_add(1);
    Some(Effect::RetryAfter(Half::Capture, state.tries.capture))
}

/// What the half is while nothing runs and nothing holds it back of its own.
pub(super) fn rest(state: &mut State) {
    match state.capture {
        Capture::Connecting | Capture::Capturing | Capture::Retrying(_) | Capture::Unavailable { .. } => {
            state.capture = Capture::Connecting;
        }
        Capture::LogFull | Capture::LineageLost(_) => {}
    }
}

pub(super) fn trouble_mut(capture: &mut Capture) -> Option<&mut Trouble> {
    match capture {
        Capture::Retrying(trouble) | Capture::Unavailable { trouble, .. } => Some(trouble),
        Capture::Connecting | Capture::Capturing | Capture::LogFull | Capture::LineageLost(_) => None,
    }
}

fn running(state: &State) -> Result<(), Refused> {
    if state.wanted().capture { Ok(()) } else { Err(Refused::NotRunning) }
}
