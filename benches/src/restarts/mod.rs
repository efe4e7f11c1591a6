//! How soon a restarted broker's chunks arrive again.
//!
//! ```text
//! numbered records, each 2 ms -> controller -> writer ~~ broker ~~ reader -> decode -> when?
//!                                                     down, up
//! ```

mod args;
mod flow;
mod row;
mod run;

pub use args::Args;
pub use row::Row;
pub use run::run;
