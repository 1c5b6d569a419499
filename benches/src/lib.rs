//! Benchmarks side by side with PostgreSQL's native logical replication.
//!
//! Ratios of one run on one machine, never figures of two. Nothing here is asserted: the table says which target a
//! ratio meets. Both sides get the same servers, tables, rows and settings; the danger is any difference between them.

pub mod backlog;
pub mod contest;
pub mod figure;
