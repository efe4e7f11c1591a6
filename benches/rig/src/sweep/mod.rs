//! What each chunk size costs: a constant load to a broker and back, measured in every setting.
//!
//! ```text
//! args -> plan: (size x rate x compression x wait time) + rivals, interleaved
//!   +- writing process: load, paced -> controller | client alone -> connector --+
//!   |                                                                           +-> broker, elsewhere
//!   +- reading process: connector -> decode -> count, hash, latency           --+
//!   -> sample a run -> kept at once -> cell -> model -> table, JSON, CSV, page
//! ```
//!
//! It is the second experiment of Knoche's paper (section 4, table 2), with latency, the reader and
//! the broker measured too, and the figures that a recommendation needs.
//! The client libraries are the program's: it gives them to the rig as a [`Program`].

mod args;
mod backlog;
mod case;
mod cell;
mod chart;
mod command;
mod drift;
mod further;
mod keep;
mod least_squares;
mod load;
mod measure;
mod model;
mod order;
mod pace;
mod page;
mod payload;
mod program;
mod readers;
mod reading;
mod recommend;
mod rivals;
mod run;
mod sample;
mod table;
mod writing;

pub use args::SweepArgs;
pub use case::{Case, Way};
pub use cell::{Cell, Interval};
pub use command::command;
pub use model::{CostModel, HeldOut};
pub use order::obey;
pub use program::{Cluster, OpenReader, PlainWriter, Program};
pub use recommend::{Bounds, Recommendation};
pub use rivals::Offering;
pub use run::{Progress, Standing};
