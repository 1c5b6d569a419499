//! The fleet: which flows run, which are started again, and what all of them show.

mod restart;

pub use restart::{Deaths, Decision, RestartPolicy};
