//! What is between two ends, and how it goes and comes back.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use baler_faults::RabbitMqNode;
use clap::ValueEnum;

use crate::failure::Failure;
use crate::mock::MockBroker;

const TOPIC: &str = "numbered";

/// What is between two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Medium {
    /// A RabbitMQ node, stopped and killed in turn.
    Amqp,
    /// A folder, whose reader is opened anew.
    File,
    /// librdkafka's mock cluster, whose broker goes down for some seconds.
    KafkaMock,
    /// A connection, whose receiver is opened anew.
    Tcp,
}

impl Medium {
    /// Its name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Amqp => "amqp",
            Self::File => "file",
            Self::KafkaMock => "kafka-mock",
            Self::Tcp => "tcp",
        }
    }
}

/// A medium that runs.
#[derive(Debug)]
pub(crate) enum Running {
    Amqp(Box<RabbitMqNode>),
    File(tempfile::TempDir),
    Mock(MockBroker),
    Tcp(u16),
}

impl Running {
    pub(crate) fn start(medium: Medium, folder: &Path) -> Result<Self, Failure> {
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

    pub(crate) fn writer_uri(&self) -> String {
        match self {
            Self::Amqp(node) => node.uri(&format!("?queue={TOPIC}")),
            Self::File(folder) => format!("file://{}", folder.path().display()),
            Self::Mock(broker) => format!("kafka://{}/{TOPIC}", broker.address()),
            Self::Tcp(port) => format!("tcp://127.0.0.1:{port}"),
        }
    }

    pub(crate) fn reader_uri(&self) -> String {
        match self {
            // One that is opened anew goes on where it was.
            Self::File(_) => self.writer_uri() + "?follow=true&consumer=numbered",
            _ => self.writer_uri(),
        }
    }

    /// Whether a restart is one of the reader.
    pub(crate) const fn restarts_reader(&self) -> bool {
        matches!(self, Self::File(_) | Self::Tcp(_))
    }

    /// Makes sure that what was declared outlives a hard end.
    pub(crate) fn sync(&self) -> Result<(), Failure> {
        match self {
            Self::Amqp(node) => node
                .sync_declarations()
                .map_err(Failure::cannot("sync declarations")),
            _ => Ok(()),
        }
    }

    /// Stops the broker, if there is one; `hard` kills it. The mock cluster knows one way only: its
    /// connections are cut, and what it has stays.
    pub(crate) fn down(&mut self, hard: bool) -> Result<(), Failure> {
        match self {
            Self::Amqp(node) => match hard {
                true => node.kill(),
                false => node.stop(),
            }
            .map_err(Failure::cannot("stop RabbitMQ")),
            Self::Mock(broker) => broker.down(),
            Self::File(_) | Self::Tcp(_) => Ok(()),
        }
    }

    /// Starts the broker again; returns when it accepts connections.
    pub(crate) fn up(&mut self) -> Result<(), Failure> {
        match self {
            Self::Amqp(node) => node.restart().map_err(Failure::cannot("start RabbitMQ")),
            Self::Mock(broker) => broker.up(),
            Self::File(_) | Self::Tcp(_) => Ok(()),
        }
    }
}
