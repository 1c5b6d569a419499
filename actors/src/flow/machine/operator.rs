//! Events of the operator and of the supervisor.

use super::super::state::{Operator, Pause, PauseScope, State, Tries, Whole};
use super::{Refused, apply, capture, rest};

/// A second pause replaces the first: scope, reason and end are the newest word.
pub(super) fn pause(state: &mut State, pause: &Pause) -> Result<(), Refused> {
    present(state)?;
    state.operator = Operator::Paused(pause.clone());
    apply::rest(state);
    match pause.scope {
        PauseScope::All => capture::rest(state),
        PauseScope::Apply => {}
    }
    Ok(())
}

pub(super) fn resume(state: &mut State) -> Result<(), Refused> {
    present(state)?;
    match state.operator {
        Operator::Running => Err(Refused::NotPaused),
        Operator::Paused(_) => {
            state.operator = Operator::Running;
            Ok(())
        }
    }
}

/// Ends Failed and Fenced. A quarantine, a lost lineage and a pause have ways out of their own.
pub(super) fn restart(state: &mut State) -> Result<(), Refused> {
    present(state)?;
    state.whole = Whole::Active;
    state.tries = Tries::default();
    rest(state);
    Ok(())
}

pub(super) fn detach(state: &mut State) -> Result<(), Refused> {
    match state.whole {
        Whole::Removing { .. } => Err(Refused::Removing),
        Whole::Active | Whole::Fenced(_) | Whole::Failed(_) | Whole::Detached => {
            state.whole = Whole::Detached;
            rest(state);
            Ok(())
        }
    }
}

pub(super) fn attach(state: &mut State) -> Result<(), Refused> {
    match state.whole {
        Whole::Detached => {
            state.whole = Whole::Active;
            Ok(())
        }
        Whole::Active | Whole::Fenced(_) | Whole::Failed(_) | Whole::Removing { .. } => {
            Err(Refused::NotDetached)
        }
    }
}

fn present(state: &State) -> Result<(), Refused> {
    match state.whole {
        Whole::Removing { .. } => Err(Refused::Removing),
        Whole::Detached => Err(Refused::Detached),
        Whole::Active | Whole::Fenced(_) | Whole::Failed(_) => Ok(()),
    }
}
