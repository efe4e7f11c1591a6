//! What more consumers bring: 1, 2 and 4 processes that share the partitions of a topic, or a
//! queue.
//!
//! ```text
//! ready-made chunks -> broker -> child: reader -> decode -> checksum -> settle
//!                             -> child: ...
//! ```
//!
//! Every consumer has a process of its own. What limits them is told by the CPU time of the
//! consumers, the broker and the machine.

mod args;
mod consumer;
mod feed;
mod row;
mod run;

pub use args::Args;
pub(crate) use consumer::{Consuming, consume};
pub use row::{Limit, Row};
pub use run::run;
