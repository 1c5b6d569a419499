//! Integration tests of the actors: everything here runs without PostgreSQL.

mod fleet;
mod simulation;
