//! Queues of their own on a node that all tests share, behind a proxy.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use baler_common::transport::uri::Uri;
use baler_common::transport::{ChunkReader, ChunkWriter, RetryClass};
use baler_connector_amqp::{AmqpConfig, AmqpReader, AmqpWriter};
use baler_connector_testkit::faults::{RabbitMqNode, TcpProxy};
use baler_connector_testkit::{ChunkSource, PATIENCE, Pump, TestMedium, within_patience};
use tempfile::TempDir;

pub(crate) fn config(uri: &str) -> AmqpConfig {
    AmqpConfig::from_uri(Uri::parse(uri).unwrap()).unwrap()
}

pub(crate) fn writer(uri: &str) -> Box<AmqpWriter> {
    Box::new(AmqpWriter::new(config(uri)))
}

pub(crate) fn reader(uri: &str) -> Box<AmqpReader> {
    Box::new(AmqpReader::new(config(uri)).unwrap())
}

/// Declares what a URI names. A busy node may need longer than a connection may take: it is tried
/// again, as a program does.
pub(crate) fn declared(uri: &str) {
    let mut writer = writer(uri);
    within_patience("the node declares", || {
        match writer.reopen(Instant::now() + PATIENCE) {
            Err(error) if error.class == RetryClass::Retry => None,
            answer => {
                answer.unwrap();
                Some(())
            }
        }
    });
    writer.close(Instant::now() + PATIENCE);
}

/// Declares what a URI names, and writes so many chunks there until they are confirmed.
pub(crate) fn fill(uri: &str, chunks: usize) {
    fill_from(uri, 1, chunks);
}

/// Writes chunks of this producer.
pub(crate) fn fill_from(uri: &str, producer: u64, chunks: usize) {
    let mut pump = Pump::open(writer(uri));
    pump.push(ChunkSource::new(producer).take(chunks));
    within_patience("all is confirmed", || {
        pump.step();
        pump.is_done().then_some(())
    });
    assert_eq!(pump.confirmed(), chunks);
}

/// A node that all tests of a build share, each with queues of its own. A test that stops a node
/// starts its own.
pub(crate) fn shared_node() -> RabbitMqNode {
    let program = std::env::current_exe().unwrap();
    RabbitMqNode::shared(&program.with_file_name("baler-rabbitmq")).unwrap()
}

/// A name that nothing else on the node has.
pub(crate) fn fresh_name(what: &str) -> String {
    static NAMED: AtomicU32 = AtomicU32::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let number = NAMED.fetch_add(1, Ordering::Relaxed);
    format!(
        "{what}-{}-{}-{number}",
        since.as_nanos(),
        std::process::id()
    )
}

/// A queue on the shared node. Writers come through a proxy, readers do not.
pub(crate) struct Rabbit {
    pub(crate) node: RabbitMqNode,
    proxy: TcpProxy,
    queue: String,
}

impl Rabbit {
    fn undeclared() -> Self {
        let node = shared_node();
        let proxy = TcpProxy::start().unwrap();
        proxy.set_target(Some(node.address()));
        Self {
            node,
            proxy,
            queue: fresh_name("contract"),
        }
    }

    /// Small limits, so that the cases that reach them are quick.
    fn settings(&self) -> String {
        format!(
            "?queue={}&max_chunk=20000&window_chunks=32&window=60000&ack_interval=20ms",
            self.queue
        )
    }
}

impl TestMedium for Rabbit {
    fn fresh() -> Self {
        let medium = Self::undeclared();
        // A queue that two declare at the same time refuses chunks until it has a leader; that may
        // be tried again, but most cases count what is confirmed at once.
        declared(&medium.node.uri(&medium.settings()));
        medium
    }

    fn writer(&mut self) -> Box<dyn ChunkWriter> {
        let port = self.proxy.address().port();
        writer(&format!("amqp://127.0.0.1:{port}{}", self.settings()))
    }

    fn reader(&mut self) -> Box<dyn ChunkReader> {
        reader(&self.node.uri(&self.settings()))
    }

    fn break_connections(&mut self) {
        self.proxy.cut();
    }

    fn stall(&mut self) {
        self.proxy.set_frozen(true);
    }

    fn resume(&mut self) {
        self.proxy.set_frozen(false);
    }
}

/// A stream on the shared node, with a file for the reader's position.
pub(crate) struct RabbitStream {
    rabbit: Rabbit,
    folder: TempDir,
}

impl RabbitStream {
    fn settings(&self) -> String {
        format!("{}&queue_type=stream", self.rabbit.settings())
    }
}

impl TestMedium for RabbitStream {
    fn fresh() -> Self {
        let medium = Self {
            rabbit: Rabbit::undeclared(),
            folder: TempDir::new().unwrap(),
        };
        declared(&medium.rabbit.node.uri(&medium.settings()));
        medium
    }

    fn writer(&mut self) -> Box<dyn ChunkWriter> {
        let port = self.rabbit.proxy.address().port();
        writer(&format!("amqp://127.0.0.1:{port}{}", self.settings()))
    }

    fn reader(&mut self) -> Box<dyn ChunkReader> {
        let settings = self.settings();
        let position = self.folder.path().join("position");
        let position = position.display();
        let rest = format!("{settings}&position_file={position}");
        reader(&self.rabbit.node.uri(&rest))
    }

    fn break_connections(&mut self) {
        self.rabbit.break_connections();
    }

    fn stall(&mut self) {
        self.rabbit.stall();
    }

    fn resume(&mut self) {
        self.rabbit.resume();
    }
}
