//! The ledger of one connection: what was received, what is durable here, and what may be confirmed (I1).
//!
//! Pure: it is told what happens and answers with positions. It must never name a position that is not
//! fsynced here; everything else about capture may be wrong without losing a transaction, this may not.
//!
//! ```text
//! received --submitted--> in flight --synced--> durable --confirm--> confirmed to the slot
//! ```
//! A keepalive position is a record like any other: it queues behind the transactions received before it.
//! Streamed transactions in progress are not in here at all: after a reconnect they are sent again whole.

use std::collections::VecDeque;
use std::time::Duration;

use trellara_storage::{Lsn, Progress};

/// See the module.
#[derive(Debug)]
pub struct Ledger {
    /// Where the newest record stands that was handed to the log.
    captured: Progress,
    /// Records handed to the log and not yet fsynced, oldest first.
    in_flight: VecDeque<Progress>,
    durable: Progress,
    /// What the slot holds of us: its own confirmed position at the start, then what was sent.
    confirmed: Lsn,
    /// A record of this connection became durable. Until then no new position is confirmed: what the slot
    /// sends again has not been compared with what was received before.
    proven: bool,
    /// The newest keepalive position at or beyond `captured`.
    keepalive: Option<Lsn>,
    /// The source asked for a reply since the last one.
    asked: bool,
    /// The source asked since the last keepalive record: do not wait for the interval.
    urgent: bool,
    /// When a keepalive position was last recorded.
    recorded: Option<Duration>,
    interval: Duration,
}

impl Ledger {
    /// `confirmed` is the slot's position as read before the stream was opened; `interval` the least time
    /// between two keepalive records that nobody asked for.
    pub fn new(durable: Progress, confirmed: Lsn, interval: Duration) -> Self {
        Self {
            captured: durable,
            in_flight: VecDeque::new(),
            durable,
            confirmed,
            proven: false,
            keepalive: None,
            asked: false,
            urgent: false,
            recorded: None,
            interval,
        }
    }

    pub fn captured(&self) -> Progress {
        self.captured
    }

    pub fn durable(&self) -> Progress {
        self.durable
    }

    pub fn confirmed(&self) -> Lsn {
        self.confirmed
    }

    /// Whether records are on their way to the disk.
    pub fn is_pending(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// The source told how far it has read, and perhaps wants an answer.
    pub fn keepalive(&mut self, position: Lsn, reply_requested: bool) {
        if self.is_news(position) {
            self.keepalive = self.keepalive.max(Some(position));
            self.urgent |= reply_requested;
        }
        self.asked |= reply_requested;
    }

    /// The keepalive position that is to be recorded now, if any: asked for, or the interval is over.
    pub fn keepalive_due(&self, now: Duration) -> Option<Progress> {
        let position = self.keepalive.filter(|&position| self.is_news(position))?;
        let due = self.urgent || self.deadline().is_none_or(|deadline| now >= deadline);
        due.then_some(Progress { commit_lsn: self.captured.commit_lsn, position })
    }

    /// When a waiting keepalive position is to be recorded at the latest; none when none waits, or at once.
    pub fn deadline(&self) -> Option<Duration> {
        self.keepalive.filter(|&position| self.is_news(position))?;
        Some(self.recorded? + self.interval)
    }

    /// A record that ends at `to` was handed to the log, behind all earlier ones.
    pub fn submitted(&mut self, to: Progress) {
        self.captured = furthest(self.captured, to);
        self.in_flight.push_back(self.captured);
    }

    /// As `submitted`, for the keepalive position that `keepalive_due` returned.
    pub fn submitted_keepalive(&mut self, to: Progress, now: Duration) {
        self.submitted(to);
        self.recorded = Some(now);
        self.urgent = false;
        self.keepalive = self.keepalive.filter(|&position| position > to.position);
    }

    /// The oldest record in flight is fsynced.
    pub fn synced(&mut self) {
        if let Some(to) = self.in_flight.pop_front() {
            self.durable = furthest(self.durable, to);
            self.proven = true;
        }
    }

    /// The newest position that may be confirmed. `applied` is what the target's checkpoint of this
    /// incarnation holds while the target answers, none while it does not.
    ///
    /// Apply that has caught up carries keepalive positions into the checkpoint; they are confirmed only
    /// then, so that an engine which loses this store still finds the slot at or below the checkpoint (I8).
    pub fn may_confirm(&self, applied: Option<Progress>) -> Lsn {
        if !self.proven {
            return self.confirmed;
        }
        let carried = match applied {
            Some(applied) if applied.commit_lsn >= self.durable.commit_lsn => {
                applied.position.min(self.durable.position)
            }
            Some(_) | None => self.durable.position,
        };
        carried.max(self.confirmed)
    }

    /// What to send to the source now: the newest position, when it is new or was asked for.
    pub fn confirm(&mut self, applied: Option<Progress>) -> Option<Lsn> {
        let position = self.may_confirm(applied);
        if position == Lsn::ZERO || !(self.asked || position > self.confirmed) {
            return None;
        }
        self.asked = false;
        self.confirmed = position;
        Some(position)
    }

    /// The position that was already reached counts once per connection: its record proves that everything
    /// before it was sent again and compared.
    fn is_news(&self, position: Lsn) -> bool {
        let seen = self.captured.position;
        position > seen || (position == seen && !self.proven && self.in_flight.is_empty())
    }
}

/// Positions move only forward.
fn furthest(left: Progress, right: Progress) -> Progress {
    Progress {
        commit_lsn: left.commit_lsn.max(right.commit_lsn),
        position: left.position.max(right.position),
    }
}

#[cfg(test)]
mod tests;
