//! What is between the two ends, and how it restarts.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::thread;
use std::time::Duration;

use baler_faults::RabbitMqNode;

use super::args::Medium;
use crate::failure::Failure;
use crate::mock::MockBroker;

/// How long the mock cluster's broker is away.
const DOWN: Duration = Duration::from_secs(3);

const TOPIC: &str = "soak";

/// A medium that runs.
#[derive(Debug)]
pub(super) enum Running {
    Amqp(Box<RabbitMqNode>),
    File(tempfile::TempDir),
    Mock(MockBroker),
    Tcp(u16),
}

impl Running {
    pub(super) fn start(medium: Medium, folder: &Path) -> Result<Self, Failure> {
        Ok(match medium {
            Medium::Amqp => {
                let node = RabbitMqNode::start().map_err(Failure::cannot("start RabbitMQ"))?;
                Self::Amqp(Box::new(node))
            }
            Medium::File => {
                Self::File(tempfile::tempdir_in(folder).map_err(Failure::cannot("make a folder"))?)
            }
            Medium::KafkaMock => Self::Mock(MockBroker::start(TOPIC, 1)?),
            Medium::Tcp => {
                let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
                let port = bound.and_then(|listener| listener.local_addr());
                Self::Tcp(port.map_err(Failure::cannot("find a port"))?.port())
            }
        })
    }

    pub(super) fn writer_uri(&self) -> String {
        match self {
            Self::Amqp(node) => node.uri(&format!("?queue={TOPIC}")),
            Self::File(folder) => format!("file://{}", folder.path().display()),
            Self::Mock(broker) => format!("kafka://{}/{TOPIC}", broker.address()),
            Self::Tcp(port) => format!("tcp://127.0.0.1:{port}"),
        }
    }

    pub(super) fn reader_uri(&self) -> String {
        match self {
            // One that is opened anew goes on where it was.
            Self::File(_) => self.writer_uri() + "?follow=true&consumer=soak",
            _ => self.writer_uri(),
        }
    }

    /// Whether a restart is one of the reader.
    pub(super) const fn restarts_reader(&self) -> bool {
        matches!(self, Self::File(_) | Self::Tcp(_))
    }

    /// Restarts the broker, if there is one; the `number`th time.
    pub(super) fn restart(&mut self, number: u64) -> Result<(), Failure> {
        match self {
            Self::Amqp(node) => {
                let ended = match number % 2 {
                    0 => node.stop(),
                    _ => node.kill(),
                };
                ended
                    .and_then(|()| node.restart())
                    .map_err(Failure::cannot("restart RabbitMQ"))
            }
            Self::Mock(broker) => {
                broker.down()?;
                thread::park_timeout(DOWN);
                broker.up()
            }
            Self::File(_) | Self::Tcp(_) => Ok(()),
        }
    }
}
