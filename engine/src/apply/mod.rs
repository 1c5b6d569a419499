//! The target side of a flow: whole transactions into one fenced target transaction.
//!
//! ```text
//! target ──► applier ──► change (which statement) ──► runs (what may share it) ──► flight (in order)
//!    │          │            statement (SQL)              array (values)              │
//!    │          └─ relations (contract check), recheck (deferrable keys)              │
//!    └─ checkpoint (fence, claim), session (settings)      judge, evidence ◄── stop ◄─┘
//! ```
//!
//! The dangers: an effect twice (the fence and COMMIT in `target`), an effect in another order than the
//! source's (`runs`), a value changed on its way (`statement`).

mod applier;
mod array;
mod change;
pub mod checkpoint;
mod evidence;
mod flight;
mod judge;
mod mapped;
mod recheck;
mod relations;
mod runs;
mod session;
mod statement;
mod stop;
mod target;
#[cfg(test)]
mod testing;

pub use target::{PgTarget, PgTargetSession};
