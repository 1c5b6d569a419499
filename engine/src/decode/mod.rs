//! pgoutput: bytes of the stream to messages, and tuple bytes to columns.
//!
//! Everything here reads outside bytes: it never indexes, never panics and never guesses. What is not
//! exactly as the protocol documents it is [`Malformed`].

mod message;
mod reader;
mod relation;
mod tuple;

pub use message::Decoder;
pub use reader::Malformed;
pub use tuple::{Before, ChangeBody, Column, Columns, Tuple};
