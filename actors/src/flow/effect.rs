//! What a transition asks for, carried out only after the transition is durable.

use super::state::{Half, State};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Start(Half),
    /// In an orderly way; the task reports its end.
    Stop(Half),
    /// Start the half again after the backoff of this many failures.
    RetryAfter(Half, u32),
}

/// The outcome of a legal transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub next: State,
    pub effects: Vec<Effect>,
}

/// What has to be started and stopped to get from what `before` wants to what `next` wants.
pub(super) fn difference(before: &State, next: &State) -> Vec<Effect> {
    let (was, is) = (before.wanted(), next.wanted());
    [Half::Capture, Half::Apply]
        .into_iter()
        .filter_map(|half| match (was.of(half), is.of(half)) {
            (false, true) => Some(Effect::Start(half)),
            (true, false) => Some(Effect::Stop(half)),
            (true, true) | (false, false) => None,
        })
        .collect()
}
