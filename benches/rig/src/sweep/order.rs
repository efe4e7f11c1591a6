//! What a process of its own is to do.

use std::io;

use serde::{Deserialize, Serialize};

use super::program::Program;
use super::reading::{self, Reading};
use super::writing::{self, Writing};
use crate::child::Child;
use crate::failure::Failure;
use crate::lines::{line, say, understand};

/// What a process of its own is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Order {
    /// To be a Kafka cluster until there is nothing more to read; says where it is, and how many
    /// bytes of a partition it keeps.
    Cluster { topic: String, partitions: u16 },
    /// To read and check runs.
    Read(Reading),
    /// To write a run.
    Write(Writing),
}

impl Order {
    /// Starts a process for it.
    pub(super) fn start(&self, program: &dyn Program) -> Result<Child, Failure> {
        let order = line(self)?;
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
            say(&(cluster.address(), cluster.retained_bytes()))?;
            io::copy(&mut io::stdin().lock(), &mut io::sink())
                .map_err(Failure::cannot("wait for the end"))?;
            Ok(())
        }
        Order::Read(reading) => reading::read(&reading, program),
        Order::Write(writing) => writing::write(&writing, program),
    }
}
