//! Sends records over one socket, as Kieker's `SingleSocketTcpWriter` does.
//!
//! The new strings of a chunk go first, and then its records.

use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use baler_blocking::{Abandon, BlockingMedium};
use baler_common::container::KiekerStreamEncoder;
use baler_common::record::RecordBatch;
use baler_common::transport::{Capability, Durability, Failure, Order, TransportError};
use socket2::SockRef;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::runtime::{self, Runtime};
use tokio::sync::watch;
use tokio::time;

use super::output::{ChunkOutput, RecordOutput, WriteError, WriterCounts};
use super::tcp_config::KiekerTcpWriterConfig;
use crate::SCHEME;

/// A connection to a reader of Kieker's streams.
#[derive(Debug)]
pub struct TcpOutput {
    stream: TcpStream,
    encoder: KiekerStreamEncoder,
    target: KiekerTcpWriterConfig,
    interrupt: watch::Receiver<bool>,
    runtime: Runtime,
    strings: Vec<u8>,
    records: Vec<u8>,
}

impl BlockingMedium for KiekerTcpWriterConfig {
    type Output = ChunkOutput<TcpOutput>;
    type Counts = WriterCounts;
    const THREAD: &'static str = "baler-kieker";

    fn capability(&self) -> Capability {
        let mut capability = Capability::new(SCHEME, Order::PerLane, Durability::None);
        // The records come back, but in the reader's own chunks.
        capability.readable = false;
        self.window.apply(&mut capability);
        capability
    }

    fn endpoint(&self) -> String {
        self.to_string()
    }

    fn open(
        &self,
        counts: &Arc<Mutex<WriterCounts>>,
        abandon: &Abandon,
        by: Instant,
    ) -> Result<Self::Output, TransportError> {
        let abandoned = watch::Sender::new(false);
        let interrupt = abandoned.subscribe();
        abandon.set(move || {
            abandoned.send_replace(true);
        });
        ChunkOutput::open(self.to_string(), self.schema.as_deref(), counts, || {
            TcpOutput::connect(self, interrupt, by)
        })
    }
}

impl RecordOutput for TcpOutput {
    fn write(&mut self, batch: &RecordBatch) -> Result<u64, WriteError> {
        if !self.encoder.has_room_for(batch) {
            self.start_anew(batch)?;
        }
        self.strings.clear();
        self.records.clear();
        let strings = &mut self.strings;
        let register = |id, text: &str| KiekerStreamEncoder::push_registration(id, text, strings);
        self.encoder.encode(batch, register, &mut self.records)?;
        let (stream, parts) = (&mut self.stream, [&self.strings, &self.records]);
        let writing = async {
            tokio::select! {
                written = send(stream, parts) => written,
                // The owner gave up, and knows that the chunk is not confirmed.
                _ = self.interrupt.wait_for(|it| *it) => Err(ErrorKind::Interrupted.into()),
            }
        };
        let written = self.runtime.block_on(writing);
        written.map_err(|error| WriteError::Broken(Failure::of_io("write to", &error)))?;
        Ok(0)
    }

    fn finish(mut self) -> Result<(), Failure> {
        let ended = self.runtime.block_on(self.stream.shutdown());
        ended.map_err(|error| Failure::of_io("close", &error))
    }
}

impl TcpOutput {
    fn connect(
        target: &KiekerTcpWriterConfig,
        interrupt: watch::Receiver<bool>,
        by: Instant,
    ) -> Result<Self, Failure> {
        let set_up = |error| Failure::of_io("set up", &error);
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(set_up)?;
        let by = by.min(Instant::now() + target.connect_timeout);
        let stream = runtime.block_on(connect(target, interrupt.clone(), by))?;
        Ok(Self {
            stream,
            encoder: KiekerStreamEncoder::new(),
            target: target.clone(),
            interrupt,
            runtime,
            strings: Vec::new(),
            records: Vec::new(),
        })
    }

    /// Begins a new connection, whose string table is empty.
    fn start_anew(&mut self, batch: &RecordBatch) -> Result<(), WriteError> {
        self.encoder = KiekerStreamEncoder::new();
        if !self.encoder.has_room_for(batch) {
            let message = "the chunk has more strings than a reader takes in one connection";
            return Err(WriteError::Refused(message.into()));
        }
        let by = Instant::now() + self.target.connect_timeout;
        let stream = self.runtime.block_on(async {
            self.stream.shutdown().await.ok();
            connect(&self.target, self.interrupt.clone(), by).await
        });
        self.stream = stream.map_err(WriteError::Broken)?;
        Ok(())
    }
}

async fn connect(
    target: &KiekerTcpWriterConfig,
    mut interrupt: watch::Receiver<bool>,
    by: Instant,
) -> Result<TcpStream, Failure> {
    let connecting = TcpStream::connect((target.host.name.as_ref(), target.port()));
    let stream = tokio::select! {
        stream = time::timeout_at(by.into(), connecting) => stream,
        _ = interrupt.wait_for(|it| *it) => {
            return Err(Failure::retry("connect to", "it was closed"));
        }
    };
    let late = |_| Err(Failure::retry("connect to", "no answer in time"));
    let stream = stream.map_or_else(late, |stream| {
        stream.map_err(|error| Failure::of_io("connect to", &error))
    })?;
    stream
        .set_nodelay(true)
        .map_err(|error| Failure::of_io("set up", &error))?;
    Ok(stream)
}

/// Writes parts, unless the reader has closed the connection.
async fn send(stream: &mut TcpStream, parts: [&Vec<u8>; 2]) -> io::Result<()> {
    check_open(stream)?;
    for part in parts {
        stream.write_all(part).await?;
    }
    Ok(())
}

/// Asks the operating system whether the reader has closed the connection.
///
/// Otherwise the first write after the close would succeed, and its bytes would be lost.
fn check_open(stream: &TcpStream) -> io::Result<()> {
    let mut answer = [MaybeUninit::uninit(); 64];
    loop {
        // The socket does not block.
        match SockRef::from(stream).recv(&mut answer) {
            Ok(0) => {
                let closed = "the reader closed the connection";
                return Err(io::Error::new(ErrorKind::ConnectionReset, closed));
            }
            // A reader of Kieker's streams sends nothing.
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}
