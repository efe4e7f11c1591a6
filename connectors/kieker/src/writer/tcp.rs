//! Sends records over one socket, as Kieker's `SingleSocketTcpWriter` does.
//!
//! The new strings of a chunk go first, and then its records. With the adaptive protocol, the
//! signatures of new probes go before both, and the socket is also read: while it is written, and
//! every [`LOOK_INTERVAL`] otherwise.

use std::future::Future;
use std::io::{self, ErrorKind, Read as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_common::record::RecordBatch;
use baler_common::transport::{Capability, Durability, Failure, Order, Probes, TransportError};
use baler_connector_file::thread_writer::{BlockingMedium, Opening};
use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::{self, Runtime};
use tokio::sync::watch;
use tokio::time;

use super::output::{ChunkOutput, RecordOutput, WriteError, WriterCounts};
use super::tcp_config::KiekerTcpWriterConfig;
use crate::SCHEME;
use crate::adaptive::{ProgramEnd, wire};
use crate::container::KiekerStreamEncoder;

/// How often to look for verdicts and for new probes while nothing is written.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// The answer to a Hello must come this time before the owner stops waiting, so that the owner gets
/// the reason.
const HELLO_MARGIN: Duration = Duration::from_millis(100);

/// How long a bridge may take to close the connection after the end.
const FAREWELL: Duration = Duration::from_secs(1);

/// A connection to a reader of Kieker's streams.
#[derive(Debug)]
pub struct TcpOutput {
    connection: Connection,
    encoder: KiekerStreamEncoder,
    target: KiekerTcpWriterConfig,
    probes: Option<Arc<dyn Probes>>,
    interrupt: watch::Receiver<bool>,
    runtime: Runtime,
    commands: Vec<u8>,
    strings: Vec<u8>,
    records: Vec<u8>,
}

/// A socket, with the commands of the adaptive protocol if it is on.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    program: Option<ProgramEnd>,
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

    fn open(&self, opening: Opening<'_, WriterCounts>) -> Result<Self::Output, TransportError> {
        let abandoned = watch::Sender::new(false);
        let interrupt = abandoned.subscribe();
        opening.abandon.set(move || {
            abandoned.send_replace(true);
        });
        let schema = self.schema.as_deref();
        ChunkOutput::open(self.to_string(), schema, opening.counts, || {
            TcpOutput::connect(self, opening.probes, interrupt, opening.by)
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
        self.send().map_err(WriteError::Broken)?;
        Ok(0)
    }

    fn tend(&mut self) -> Result<Duration, Failure> {
        if self.probes.is_none() {
            return Ok(Duration::MAX);
        }
        self.strings.clear();
        self.records.clear();
        self.send()?;
        Ok(LOOK_INTERVAL)
    }

    fn finish(mut self) -> Result<(), Failure> {
        self.runtime
            .block_on(uninterrupted(&mut self.interrupt, self.connection.end()))
    }
}

impl TcpOutput {
    fn connect(
        target: &KiekerTcpWriterConfig,
        probes: Option<&Arc<dyn Probes>>,
        mut interrupt: watch::Receiver<bool>,
        by: Instant,
    ) -> Result<Self, Failure> {
        let set_up = |error| Failure::of_io("set up", &error);
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(set_up)?;
        let probes = match (target.adaptive, probes) {
            (false, _) => None,
            (true, Some(probes)) => Some(Arc::clone(probes)),
            (true, None) => {
                let reason = "adaptive=true is for programs with probes, and this one has none";
                return Err(Failure::last("open", reason));
            }
        };
        let by = by.min(Instant::now() + target.connect_timeout);
        let connecting = Connection::open(target, probes.as_ref(), by);
        let connection = runtime.block_on(uninterrupted(&mut interrupt, connecting))?;
        Ok(Self {
            connection,
            encoder: KiekerStreamEncoder::new(),
            target: target.clone(),
            probes,
            interrupt,
            runtime,
            commands: Vec::new(),
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
        let connecting = async {
            self.connection.end().await.ok();
            Connection::open(&self.target, self.probes.as_ref(), by).await
        };
        let connecting = uninterrupted(&mut self.interrupt, connecting);
        let connection = self.runtime.block_on(connecting);
        self.connection = connection.map_err(WriteError::Broken)?;
        Ok(())
    }

    /// Takes what the reader has sent. Sends due commands, then the strings and records.
    fn send(&mut self) -> Result<(), Failure> {
        self.connection.look()?;
        self.commands.clear();
        if let Some(program) = &mut self.connection.program {
            program.push_commands(&mut self.commands);
        }
        let parts = [&self.commands, &self.strings, &self.records];
        if parts.iter().all(|part| part.is_empty()) {
            return Ok(());
        }
        let sending = uninterrupted(&mut self.interrupt, self.connection.send(parts));
        self.runtime.block_on(sending)
    }
}

impl Connection {
    async fn open(
        target: &KiekerTcpWriterConfig,
        probes: Option<&Arc<dyn Probes>>,
        by: Instant,
    ) -> Result<Self, Failure> {
        let connecting = TcpStream::connect((&*target.host, target.port));
        let stream = time::timeout_at(by.into(), connecting).await;
        let stream = stream.map_err(|_| Failure::retry("connect to", "no answer in time"))?;
        let stream = stream.map_err(|error| Failure::of_io("connect to", &error))?;
        stream
            .set_nodelay(true)
            .map_err(|error| Failure::of_io("set up", &error))?;
        let mut connection = Self {
            stream,
            program: probes.map(|it| ProgramEnd::new(Arc::clone(it))),
        };
        if connection.program.is_some() {
            let by = by.checked_sub(HELLO_MARGIN).unwrap_or(by);
            let greeted = time::timeout_at(by.into(), connection.greet()).await;
            let late = |_| Err("none came in time".into());
            greeted.unwrap_or_else(late).map_err(|reason: Box<str>| {
                let message = format!(
                    "no valid answer to the Hello of the adaptive protocol ({reason}); Kieker's own \
                     readers do not know the protocol, for them leave out adaptive=true"
                );
                Failure::retry("connect to", message)
            })?;
        }
        Ok(connection)
    }

    /// Sends a Hello and waits for the answer.
    ///
    /// Records would be lost if they followed at once: a reader that does not know the command ends
    /// the connection.
    async fn greet(&mut self) -> Result<(), Box<str>> {
        let Some(program) = &mut self.program else {
            return Ok(());
        };
        let mut hello = Vec::new();
        program.push_hello(&mut hello);
        let sent = self.stream.write_all(&hello).await;
        sent.map_err(|error| error.to_string())?;
        let mut bytes = [0; 4_096];
        while !program.is_greeted() {
            let read = self.stream.read(&mut bytes).await;
            program.take(received(read, &bytes)?)?;
        }
        Ok(())
    }

    /// Takes what the reader has sent, without waiting.
    ///
    /// It also finds that the reader has closed the connection. Otherwise the first write after the
    /// close would succeed, and its bytes would be lost.
    fn look(&mut self) -> Result<(), Failure> {
        let mut bytes = [0; 4_096];
        loop {
            // The socket does not block.
            match (&*SockRef::from(&self.stream)).read(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                read => take(&mut self.program, read, &bytes)?,
            }
        }
    }

    /// Writes parts, and meanwhile takes what the reader sends.
    async fn send(&mut self, parts: [&Vec<u8>; 3]) -> Result<(), Failure> {
        let (mut receiving, mut sending) = self.stream.split();
        let writing = async {
            for part in parts {
                sending.write_all(part).await?;
            }
            io::Result::Ok(())
        };
        tokio::pin!(writing);
        let mut bytes = [0; 4_096];
        loop {
            tokio::select! {
                biased;
                written = &mut writing => {
                    return written.map_err(|error| Failure::of_io("write to", &error));
                }
                read = receiving.read(&mut bytes) => take(&mut self.program, read, &bytes)?,
            }
        }
    }

    /// Ends the connection after the last record.
    async fn end(&mut self) -> Result<(), Failure> {
        if self.program.is_some() {
            let mut bye = Vec::new();
            wire::push_bye(0, &mut bye);
            let sent = self.stream.write_all(&bye).await;
            sent.map_err(|error| Failure::of_io("write to", &error))?;
        }
        let ended = self.stream.shutdown().await;
        ended.map_err(|error| Failure::of_io("close", &error))?;
        if self.program.is_some() {
            // The operating system discards records that are on their way if commands of the bridge
            // are left unread.
            let mut rest = [0; 4_096];
            let read =
                async { while self.stream.read(&mut rest).await.is_ok_and(|read| read > 0) {} };
            time::timeout(FAREWELL, read).await.ok();
        }
        Ok(())
    }
}

/// Passes received bytes to the program. Without one they have no meaning: a reader of Kieker's
/// streams sends nothing.
fn take(
    program: &mut Option<ProgramEnd>,
    read: io::Result<usize>,
    bytes: &[u8],
) -> Result<(), Failure> {
    let taken = received(read, bytes).and_then(|received| match program {
        Some(program) => program.take(received),
        None => Ok(()),
    });
    taken.map_err(|reason| Failure::retry("read from", reason))
}

fn received(read: io::Result<usize>, bytes: &[u8]) -> Result<&[u8], Box<str>> {
    match read {
        Ok(0) => Err("the reader closed the connection".into()),
        Ok(read) => bytes.get(..read).ok_or_else(|| "too many bytes".into()),
        Err(error) => Err(error.to_string().into()),
    }
}

/// Returns the result, unless the owner gives up first. The owner then knows that the last chunk is
/// not confirmed.
async fn uninterrupted<T>(
    interrupt: &mut watch::Receiver<bool>,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        done = work => done,
        _ = interrupt.wait_for(|it| *it) => Err(Failure::retry("use", "it was closed")),
    }
}
