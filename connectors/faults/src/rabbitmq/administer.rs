//! What an administrator does to a node.

use std::process::Stdio;

use super::{RabbitMqNode, START};
use crate::FaultError;
use crate::error::within;

/// What `rabbitmqctl` says of a node that takes connections and has not started yet.
const STARTING: &str = "requires the 'rabbit' app to be running";

impl RabbitMqNode {
    /// Runs `rabbitmqctl` and yields what it says. A node that is starting is waited for.
    ///
    /// # Errors
    ///
    /// It fails.
    pub fn control(&self, arguments: &[&str]) -> Result<String, FaultError> {
        within(START, "RabbitMQ has started", || {
            let mut command = self.command("rabbitmqctl")?;
            let output = command.args(arguments).stdin(Stdio::null()).output();
            let output = output.map_err(FaultError::io("run rabbitmqctl"))?;
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            if output.status.success() {
                return Ok(Some(said));
            }
            let complaint = String::from_utf8_lossy(&output.stderr);
            if complaint.contains(STARTING) {
                return Ok(None);
            }
            Err(FaultError::Refused {
                command: format!("rabbitmqctl {}", arguments.join(" ")).into(),
                output: format!("{said}{complaint}").into(),
            })
        })
    }

    /// Forces to disk what was declared. A node keeps declarations in memory for a moment (Mnesia's
    /// log, Ra's directory of quorum queues), and one that is killed in it forgets the queue with
    /// everything confirmed in it: who kills it must call this after its queues are declared.
    ///
    /// # Errors
    ///
    /// The node does not run.
    pub fn sync_declarations(&self) -> Result<(), FaultError> {
        let sync = "mnesia:sync_log(), [dets:sync(Table) || Table <- dets:all()], ok.";
        self.control(&["eval", sync]).map(drop)
    }

    /// Closes the connections of all clients.
    ///
    /// # Errors
    ///
    /// The node does not run.
    pub fn close_connections(&self) -> Result<(), FaultError> {
        self.control(&["close_all_connections", "closed by the test of faults"])
            .map(drop)
    }

    /// Lets the node believe that it is short of memory, or not any more. While it is, it reads
    /// nothing from connections that publish, and notifies them (`connection.blocked`).
    ///
    /// # Errors
    ///
    /// The node does not run.
    pub fn set_memory_alarm(&self, raised: bool) -> Result<(), FaultError> {
        let watermark = if raised { "0.00001" } else { "0.5" };
        self.control(&["set_vm_memory_high_watermark", watermark])
            .map(drop)
    }
}
