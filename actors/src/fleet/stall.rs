//! A flow that lives and does nothing: when its actor does not answer, or its apply is silent while there
//! is something to apply.

use std::time::Duration;

use crate::flow::Work;

/// Deadlines of a live flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StallPolicy {
    /// How often an actor that had nothing to do is asked whether it is there.
    pub ask: Duration,
    /// How long an answer may take, and how long an end.
    pub answer: Duration,
    /// How long apply may be silent while work is pending; longer than the largest transaction takes.
    pub progress: Duration,
}

impl Default for StallPolicy {
    fn default() -> Self {
        Self {
            ask: Duration::from_secs(10),
            answer: Duration::from_secs(30),
            progress: Duration::from_secs(900),
        }
    }
}

/// What the supervisor knows of a running flow, by monotonic time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    /// The unanswered question, if there is one.
    pub(super) asked: Option<Duration>,
    pub(super) answered: Duration,
    /// When it was told to end.
    pub(super) ending: Option<Duration>,
    pub(super) work: Work,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Fine,
    /// Nothing heard for a while: ask.
    Ask,
    /// The actor answers, its work does not move.
    Stuck,
    /// The actor does not answer, or does not end.
    Mute,
}

impl StallPolicy {
    pub(super) fn judge(&self, life: Life, now: Duration) -> Verdict {
        let since = |then: Duration| now.saturating_sub(then);
        if life.asked.is_some_and(|at| since(at) > self.answer)
            || life.ending.is_some_and(|at| since(at) > self.answer)
        {
            return Verdict::Mute;
        }
        if life.ending.is_some() || life.asked.is_some() {
            return Verdict::Fine;
        }
        if life.work.pending && since(life.work.silent_since) > self.progress {
            return Verdict::Stuck;
        }
        if since(life.answered) > self.ask { Verdict::Ask } else { Verdict::Fine }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn second(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn silence_is_judged_by_what_was_asked_and_what_is_pending() {
        let policy = StallPolicy { ask: second(10), answer: second(30), progress: second(60) };
        let idle = Life { asked: None, answered: second(100), ending: None, work: Work::default() };
        let busy = Work { pending: true, silent_since: second(100) };
        for (life, now, verdict) in [
            (idle, 105, Verdict::Fine),
            (idle, 111, Verdict::Ask),
            (Life { asked: Some(second(111)), ..idle }, 120, Verdict::Fine),
            (Life { asked: Some(second(111)), ..idle }, 142, Verdict::Mute),
            (Life { ending: Some(second(100)), ..idle }, 129, Verdict::Fine),
            (Life { ending: Some(second(100)), ..idle }, 131, Verdict::Mute),
            (Life { work: busy, answered: second(155), ..idle }, 160, Verdict::Fine),
            (Life { work: busy, answered: second(155), ..idle }, 161, Verdict::Stuck),
            (Life { work: busy, ending: Some(second(150)), ..idle }, 161, Verdict::Fine),
        ] {
            assert_eq!(policy.judge(life, second(now)), verdict, "{life:?} at {now}");
        }
    }
}
