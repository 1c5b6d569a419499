//! Doubles of the ports, for tests and the simulation.

pub mod scripted_target;
pub mod simulation;
