//! The source side of a flow: facts, slot, stream, heartbeat.
