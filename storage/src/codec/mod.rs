//! How keys and values look on disk. Keys are big-endian so that byte order is semantic order; values
//! carry their version and a checksum and are verified before a byte of them is believed (I10).

pub mod key;
pub mod value;
