//! pgoutput: bytes of the stream to messages, and tuple bytes to columns.
