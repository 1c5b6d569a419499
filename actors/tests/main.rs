//! The drivers over simulated ports.

mod simulation;
