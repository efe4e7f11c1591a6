//! A writer that counts and discards, a reader that is at its end.
