//! The one road to durability: the log writer thread, its permits and fair turns, and the readers.
