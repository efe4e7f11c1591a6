//! The contract that every connector passes.
