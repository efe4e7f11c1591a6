//! Self-contained chunks of the same records in every format: bytes, encoding and decoding.
//!
//! ```text
//! recording -> pieces of a chunk each -> encode -> pack -> unpack -> decode -> the same calls
//! ```
//!
//! [`Args`] -> cases -> each in every round of the schedule -> [`Row`] -> table or JSON.

mod args;
mod case;
mod formats;
mod measure;
mod packing;
mod piece;
mod row;
mod run;

pub use args::Args;
pub use case::{Case, Codec};
pub use row::Row;
pub use run::run;
