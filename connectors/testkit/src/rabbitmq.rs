//! RabbitMQ nodes for tests, in which a fault that fails is a failed test.

use std::ops::Deref;

use baler_faults::{FaultError, RabbitMqNode};

/// A [`RabbitMqNode`] whose errors are panics.
///
/// Debian's package `rabbitmq-server` must be installed; `scripts/test` sees to it.
/// What is not here is reached by dereferencing.
#[derive(Debug)]
pub struct RabbitMq(RabbitMqNode);

impl RabbitMq {
    /// [`RabbitMqNode::start`].
    ///
    /// # Panics
    ///
    /// RabbitMQ is not installed, or the node does not start.
    pub fn start() -> Self {
        Self(done(RabbitMqNode::start()))
    }

    /// [`RabbitMqNode::prepare`].
    ///
    /// # Panics
    ///
    /// RabbitMQ is not installed.
    pub fn prepare() -> Self {
        Self(done(RabbitMqNode::prepare()))
    }

    /// [`RabbitMqNode::prepare_with`].
    ///
    /// # Panics
    ///
    /// RabbitMQ is not installed.
    pub fn prepare_with(settings: &str) -> Self {
        Self(done(RabbitMqNode::prepare_with(settings)))
    }

    /// A node that all tests of a build share, each with queues of its own:
    /// [`RabbitMqNode::shared`]. Tests that stop a node [start](Self::start) their own.
    ///
    /// # Panics
    ///
    /// RabbitMQ is not installed, or the node does not start.
    pub fn shared() -> Self {
        let program = std::env::current_exe().expect("the test knows its program");
        let folder = program.with_file_name("baler-rabbitmq");
        Self(done(RabbitMqNode::shared(&folder)))
    }

    /// [`RabbitMqNode::restart`].
    ///
    /// # Panics
    ///
    /// It does not start.
    pub fn restart(&self) {
        done(self.0.restart());
    }

    /// [`RabbitMqNode::stop`].
    ///
    /// # Panics
    ///
    /// It does not stop.
    pub fn stop(&self) {
        done(self.0.stop());
    }

    /// [`RabbitMqNode::kill`].
    ///
    /// # Panics
    ///
    /// It does not end.
    pub fn kill(&self) {
        done(self.0.kill());
    }

    /// [`RabbitMqNode::control`].
    ///
    /// # Panics
    ///
    /// It fails.
    pub fn control(&self, arguments: &[&str]) -> String {
        done(self.0.control(arguments))
    }

    /// [`RabbitMqNode::sync_declarations`].
    ///
    /// # Panics
    ///
    /// The node does not run.
    pub fn sync_declarations(&self) {
        done(self.0.sync_declarations());
    }

    /// [`RabbitMqNode::close_connections`].
    ///
    /// # Panics
    ///
    /// The node does not run.
    pub fn close_connections(&self) {
        done(self.0.close_connections());
    }

    /// [`RabbitMqNode::set_memory_alarm`].
    ///
    /// # Panics
    ///
    /// The node does not run.
    pub fn set_memory_alarm(&self, raised: bool) {
        done(self.0.set_memory_alarm(raised));
    }
}

impl Deref for RabbitMq {
    type Target = RabbitMqNode;

    fn deref(&self) -> &RabbitMqNode {
        &self.0
    }
}

fn done<T>(result: Result<T, FaultError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}
