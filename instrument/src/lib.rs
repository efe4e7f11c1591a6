#![doc = include_str!("../README.md")]
#![cfg_attr(
    feature = "sources",
    allow(
        clippy::incompatible_msrv,
        reason = "signatures compile with Rust 1.85, the rest belongs to the program"
    ),
    allow(
        clippy::indexing_slicing,
        clippy::string_slice,
        reason = "positions come from the text itself, and the program reports a panic as its fault"
    )
)]

#[cfg(feature = "sources")]
mod edit;
#[cfg(feature = "sources")]
mod manifest;
#[cfg(feature = "sources")]
mod modules;
#[cfg(feature = "sources")]
mod names;
#[cfg(feature = "sources")]
mod packages;
#[cfg(feature = "sources")]
mod parsed;
#[cfg(feature = "sources")]
mod problem;
#[cfg(feature = "sources")]
mod reasons;
pub mod signature;
#[cfg(feature = "sources")]
mod source;
#[cfg(feature = "sources")]
mod tree;

#[cfg(feature = "sources")]
pub use edit::Change;
#[cfg(feature = "sources")]
pub use problem::Problem;
#[cfg(feature = "sources")]
pub use tree::{Attribute, Function, State, Tree, remove_all};
