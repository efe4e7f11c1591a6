//! Programs whose functions get probes: their packages, their files and the functions in them.

#![allow(
    clippy::incompatible_msrv,
    reason = "signatures compile with Rust 1.85, the rest belongs to the program"
)]
#![allow(
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "positions come from the text itself, and the program reports a panic as its fault"
)]

mod edit;
mod manifest;
mod modules;
mod names;
mod packages;
mod parsed;
mod problem;
mod reasons;
mod source;
mod tree;

pub use edit::Change;
pub use problem::Problem;
pub use tree::{Attribute, Function, State, Tree, remove_all};
