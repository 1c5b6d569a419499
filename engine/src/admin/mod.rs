//! The admin API on a Unix socket.
