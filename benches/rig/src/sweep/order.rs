//! What a process of its own is to do, and the lines in which both sides talk.

use std::io::{self, Write as _};

use serde::{Deserialize, Serialize};

use super::program::Program;
use super::reading::{self, Reading};
use super::writing::{self, Writing};
use crate::child::Child;
use crate::failure::Failure;

/// What a process of its own is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Order {
    /// To be a Kafka cluster until there is nothing more to read; says where it is.
    Cluster { topic: String, partitions: u16 },
    /// To read and check runs.
    Read(Reading),
    /// To write a run.
    Write(Writing),
}

impl Order {
    /// Starts a process for it.
    pub(super) fn start(&self, program: &dyn Program) -> Result<Child, Failure> {
        let order = serde_json::to_string(self).map_err(Failure::cannot("write JSON"))?;
        let mut words = program.words().to_vec();
        words.push(&order);
        Child::of_this_program(&words).map_err(Failure::cannot("start a process"))
    }
}

/// Does in this process what [`command`](super::command()) wants of it: reads orders from standard
/// input until that ends, and answers on standard output.
///
/// # Errors
///
/// It is no order, or it cannot be carried out.
pub fn obey(order: &str, program: &dyn Program) -> Result<(), Failure> {
    match understand(order)? {
        Order::Cluster { topic, partitions } => {
            let cluster = program.cluster(&topic, partitions)?;
            say(&cluster.address())?;
            io::copy(&mut io::stdin().lock(), &mut io::sink())
                .map_err(Failure::cannot("wait for the end"))?;
            Ok(())
        }
        Order::Read(reading) => reading::read(&reading, program),
        Order::Write(writing) => writing::write(&writing, program),
    }
}

/// Tells the other side something, as a line of JSON.
pub(super) fn say(value: &impl Serialize) -> Result<(), Failure> {
    let line = serde_json::to_string(value).map_err(Failure::cannot("write JSON"))?;
    let mut out = io::stdout().lock();
    let said = writeln!(out, "{line}").and_then(|()| out.flush());
    said.map_err(Failure::cannot("answer"))
}

/// What the other side said.
pub(super) fn understand<T: for<'a> Deserialize<'a>>(line: &str) -> Result<T, Failure> {
    serde_json::from_str(line).map_err(Failure::cannot("understand another process"))
}
