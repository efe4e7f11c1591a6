//! What each part of the way costs, and the whole way through each medium.
//!
//! ```text
//! load -> emit -> queue -> collector -> encode ~~ null | file | tcp ~~ decode -> checksum
//! ```
//!
//! [`Args`] -> cases -> each in every round of the schedule -> [`Row`] -> table or JSON.

mod args;
mod case;
mod codec;
mod consume;
mod keeping;
mod load;
mod media;
mod row;
mod run;
mod send;

pub use args::Args;
pub use case::{Case, Encoding, FileSync, Part};
pub use row::Row;
pub use run::run;
