//! The medium between the two ends, and its restarts.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use baler_common::transport::uri::Uri;
use baler_common::transport::{ChunkReader, ChunkWriter, Media};
use baler_faults::RabbitMqNode;
use clap::ValueEnum;

use crate::Failure;

/// How long the writer of files may take to make the first one.
const PATIENCE: Duration = Duration::from_secs(60);

/// A medium between the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Medium {
    /// A RabbitMQ node, stopped and killed in turn.
    Amqp,
    /// A folder, whose reader is opened again.
    File,
    /// A connection, whose receiver is opened again.
    Tcp,
}

impl Medium {
    /// Its name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Amqp => "amqp",
            Self::File => "file",
            Self::Tcp => "tcp",
        }
    }
}

/// A medium that runs.
#[derive(Debug)]
pub(super) enum Running {
    Amqp(Box<RabbitMqNode>),
    File(tempfile::TempDir),
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
            Medium::Tcp => {
                let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
                let port = bound.and_then(|listener| listener.local_addr());
                Self::Tcp(port.map_err(Failure::cannot("find a port"))?.port())
            }
        })
    }

    pub(super) fn writer_uri(&self) -> String {
        match self {
            Self::Amqp(node) => node.uri("?queue=numbered"),
            Self::File(folder) => format!("file://{}", folder.path().display()),
            Self::Tcp(port) => format!("tcp://127.0.0.1:{port}"),
        }
    }

    pub(super) fn reader_uri(&self) -> String {
        match self {
            // A reader that is opened again continues where it was.
            Self::File(_) => self.writer_uri() + "?follow=true&consumer=numbered",
            _ => self.writer_uri(),
        }
    }

    /// Waits until a reader can be opened.
    pub(super) fn wait_for_reader(&self) -> Result<(), Failure> {
        let Self::File(folder) = self else {
            return Ok(());
        };
        let by = Instant::now() + PATIENCE;
        while Instant::now() < by {
            let entries = folder.path().read_dir();
            if entries.is_ok_and(|mut entries| entries.next().is_some()) {
                return Ok(());
            }
            thread::park_timeout(Duration::from_millis(10));
        }
        Err(Failure::new("the writer makes no file"))
    }

    /// Makes sure that declared queues outlive a kill.
    pub(super) fn sync(&self) -> Result<(), Failure> {
        match self {
            Self::Amqp(node) => {
                let synced = node.sync_declarations();
                synced.map_err(Failure::cannot("sync declarations"))
            }
            Self::File(_) | Self::Tcp(_) => Ok(()),
        }
    }

    /// Restarts the broker for the `number`th time, every other time by a kill; returns when it accepts
    /// connections. Without a broker the reader restarts: `false`.
    pub(super) fn restart(&self, number: u64) -> Result<bool, Failure> {
        let Self::Amqp(node) = self else {
            return Ok(false);
        };
        let ended = match number % 2 {
            1 => node.kill(),
            _ => node.stop(),
        };
        let restarted = ended.and_then(|()| node.restart());
        restarted
            .map(|()| true)
            .map_err(Failure::cannot("restart RabbitMQ"))
    }
}

fn wrong<E: std::fmt::Display>(error: E) -> Failure {
    Failure::cannot("use the URI")(error)
}

fn media() -> Media {
    let amqp = Media::default().with(baler_connector_amqp::MEDIUM);
    let file = amqp.with(baler_connector_file::MEDIUM);
    file.with(baler_connector_tcp::MEDIUM)
}

/// A writer to the medium.
pub(super) fn writer(uri: &str) -> Result<Box<dyn ChunkWriter>, Failure> {
    let uri = Uri::parse(uri).map_err(wrong)?;
    media().writer(uri).map_err(wrong)
}

/// A reader of the medium, opened.
pub(super) fn reader(uri: &str) -> Result<Box<dyn ChunkReader>, Failure> {
    let uri = Uri::parse(uri).map_err(wrong)?;
    let receiver = media().receiver(uri, false).map_err(wrong)?;
    let opened = receiver.open();
    Ok(opened.map_err(Failure::cannot("open the reader"))?.reader)
}
