//! The repair plan: what is blocked, and the exact commands that unblock it.
