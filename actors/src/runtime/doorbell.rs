//! Reports from tasks to their flow: coalesced in a shared cell, announced by at most one message.
//!
//! A mailbox gives no backpressure, so nothing that grows with the data may travel through it. A task
//! leaves its newest report in its cell and rings; the bell is silent while a ring is on its way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Rings once until it is answered.
pub struct Doorbell {
    rung: AtomicBool,
    ring: Box<dyn Fn() + Send + Sync>,
}

impl Doorbell {
    /// `ring` sends one message to the flow; a flow that is gone is not worth reporting.
    pub fn new(ring: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { rung: AtomicBool::new(false), ring: Box::new(ring) })
    }

    pub fn ring(&self) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            (self.ring)();
        }
    }

    /// To be called before the cells are looked at, so that what arrives meanwhile rings again.
    pub fn answer(&self) {
        self.rung.store(false, Ordering::Release);
    }
}

impl std::fmt::Debug for Doorbell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Doorbell").field("rung", &self.rung).finish_non_exhaustive()
    }
}

/// A report that may make an earlier, unread one superfluous.
pub trait Report: Send + 'static {
    fn replaces(&self, earlier: &Self) -> bool;
}

/// A task's way to its flow.
#[derive(Debug)]
pub struct Reports<R> {
    unread: Arc<Mutex<Vec<R>>>,
    bell: Arc<Doorbell>,
}

impl<R> Clone for Reports<R> {
    fn clone(&self) -> Self {
        Self { unread: Arc::clone(&self.unread), bell: Arc::clone(&self.bell) }
    }
}

impl<R: Report> Reports<R> {
    pub fn new(bell: Arc<Doorbell>) -> Self {
        Self { unread: Arc::new(Mutex::new(Vec::new())), bell }
    }

    /// Never blocks and never grows: what the report replaces is taken out.
    pub fn send(&self, report: R) {
        {
            let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
            unread.retain(|earlier| !report.replaces(earlier));
            unread.push(report);
        }
        self.bell.ring();
    }

    /// What was reported since the last call, in order.
    pub fn take(&self) -> Vec<R> {
        std::mem::take(&mut self.unread.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    impl Report for u32 {
        fn replaces(&self, earlier: &Self) -> bool {
            self % 2 == earlier % 2
        }
    }

    #[test]
    fn any_number_of_reports_rings_once_until_the_bell_is_answered() {
        let rings = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&rings);
        let bell = Doorbell::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        let reports = Reports::new(Arc::clone(&bell));
        for number in 0..100_u32 {
            reports.send(number);
        }
        assert_eq!(rings.load(Ordering::Relaxed), 1);
        bell.answer();
        assert_eq!(reports.take(), [98, 99]);
        reports.send(1);
        assert_eq!(rings.load(Ordering::Relaxed), 2);
    }
}
