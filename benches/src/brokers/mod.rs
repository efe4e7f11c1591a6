//! What it costs to write records to a broker: Baler beside the client library alone.
//!
//! ```text
//!            +- child: workload -> emit -> collector -> writer --+
//! schedule --+                                                   +-> broker, elsewhere -> counted
//!            +- child: workload -> bytes -> client library ------+
//! ```
//!
//! Every repetition has a process of its own, whose CPU time is all that counts; the broker is
//! another one: a RabbitMQ node, librdkafka's mock cluster, or what `KAFKA_BOOTSTRAP` names.

mod args;
mod broker;
mod case;
mod clients;
mod row;
mod run;
mod task;
mod writing;

pub use args::Args;
pub use case::{Case, Way};
pub use row::Row;
pub use run::run;
pub(crate) use task::Writing;
pub(crate) use writing::write;
