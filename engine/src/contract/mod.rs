//! Whether a relation of the source fits its table at the target, and the exact DDL where it does not.
