//! Whether anything grows: a writing and a reading process at a steady rate for a long time, with
//! a broker that restarts every minute.
//!
//! ```text
//! child: numbered records -> controller -> writer ~~ medium ~~ reader -> decode -> seen? :child
//!    ^ memory, descriptors, threads              ^ restarts        ^ memory, descriptors, threads
//! ```

mod args;
mod ends;
mod endurance;
mod row;
mod run;

pub use args::Args;
pub(crate) use ends::{Reading, Sending, read, send};
pub use row::Row;
pub use run::run;
