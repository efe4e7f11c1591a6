//! One sender: hello, chunks in, acknowledgements out.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_common::transport::{Damaged, Origin};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::watch;
use tokio::time;

use super::counts::add;
use super::progress::Connection;
use super::shared::{Arriving, Pending, Shared};
use crate::SCHEME;
use crate::config::{TcpConfig, silence};
use crate::error::{ProtocolError, ProtocolErrorKind};
use crate::frame::{FrameHeader, FrameKind};
use crate::hello::{Hello, Role};
use crate::incoming::{Incoming, Step};
use crate::kieker::{self, Guess};
use crate::security::{self, ACCEPTED, PROOF_BYTES, REFUSED};

/// How much is read at a time, at least: several small chunks share one allocation.
const READ_BYTES: usize = 64 << 10;

/// Below so much room a new buffer is made instead of reading little.
const LEAST_ROOM: usize = 4 << 10;

/// How fast a frame must arrive at least, once it has begun and as long as this side reads.
const LEAST_BYTES_PER_SECOND: u32 = 16 << 10;

/// How many bytes of a damaged connection are kept, unless they are one chunk.
const DAMAGED_BYTES: usize = 64 << 10;

/// How a connection ended.
#[derive(Debug)]
enum End {
    /// The sender said that nothing follows, or never began.
    Bye,
    /// This side is stopping.
    Stopped,
    /// It was cut, or silent.
    Lost,
    /// What the sender sent cannot be; and what of it was not read yet.
    Broken(ProtocolError, Bytes),
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Lost
    }
}

impl From<time::error::Elapsed> for End {
    fn from(_: time::error::Elapsed) -> Self {
        Self::Lost
    }
}

/// Serves one sender until either side ends.
pub(super) async fn serve(
    mut stream: TcpStream,
    peer: SocketAddr,
    config: Arc<TcpConfig>,
    shared: Arc<Shared>,
    mut stop: watch::Receiver<Option<Instant>>,
) {
    let endpoint: Box<str> = format!("{SCHEME}://{peer}").into();
    let connection = Arc::new(Connection::new(endpoint));
    let end = tokio::select! {
        greeted = greet(&mut stream, &config, &shared) => match greeted {
            Ok((hello, rest)) => {
                add(&shared.counts.connections, 1);
                converse(&mut stream, &config, &shared, &connection, &hello, rest, stop).await
            }
            Err(end) => end,
        },
        _ = stop.changed() => End::Stopped,
    };
    connection.set_gone();
    match end {
        End::Bye | End::Stopped => {}
        End::Lost => add(&shared.counts.connections_lost, 1),
        End::Broken(error, bytes) => {
            add(&shared.counts.connections_lost, 1);
            shared.push_damaged(Damaged {
                bytes,
                origin: Origin {
                    endpoint: connection.endpoint.clone(),
                    lane: peer.to_string().into(),
                    position: error.offset,
                },
                reason: error.to_string().into(),
            });
        }
    }
}

/// Hears the sender's hello and answers it, within the configured time.
async fn greet(
    stream: &mut TcpStream,
    config: &TcpConfig,
    shared: &Shared,
) -> Result<(Hello, BytesMut), End> {
    stream.set_nodelay(true)?;
    let broken = |kind, bytes: BytesMut| {
        let error = ProtocolError {
            offset: 0,
            reading: "the sender's hello",
            kind,
        };
        End::Broken(error, bytes.freeze())
    };
    let mut bytes = BytesMut::with_capacity(LEAST_ROOM);
    let heard = time::timeout(config.connect_timeout, async {
        while (bytes.len() < Hello::BYTES && Hello::may_start(&bytes))
            || kieker::guess(&bytes) == Guess::Perhaps
        {
            if stream.read_buf(&mut bytes).await? == 0 {
                break;
            }
        }
        io::Result::Ok(())
    });
    let heard = heard.await;
    if bytes.is_empty() {
        // Somebody looked whether the port is open.
        return Err(End::Bye);
    }
    if kieker::guess(&bytes) == Guess::Yes {
        return Err(broken(ProtocolErrorKind::Kieker, bytes));
    }
    if !Hello::may_start(&bytes) {
        return Err(broken(ProtocolErrorKind::Magic, bytes));
    }
    let Some(hello) = bytes.first_chunk() else {
        let kind = heard.map_or_else(
            |_| ProtocolErrorKind::Silence {
                milliseconds: config.connect_timeout.as_millis(),
            },
            |_| ProtocolErrorKind::Ended,
        );
        return Err(broken(kind, bytes));
    };
    let hello = Hello::read(hello, Role::Sender);
    if !matches!(hello, Err(ProtocolErrorKind::Checksum { .. })) {
        // A sender of another version learns from the answer which ones are spoken here.
        let answer = config.hello(Role::Receiver).to_bytes();
        time::timeout(config.connect_timeout, stream.write_all(&answer)).await??;
    }
    match hello {
        Ok(hello) => {
            let mut rest = bytes.split_off(Hello::BYTES);
            let admitted = admit(stream, config, shared, hello, &mut rest);
            match time::timeout(config.connect_timeout, admitted).await? {
                Ok(()) => Ok((hello, rest)),
                Err(None) => Err(End::Lost),
                Err(Some(kind)) => {
                    add(&shared.counts.connections_refused, 1);
                    Err(broken(kind, bytes))
                }
            }
        }
        Err(kind) => Err(broken(kind, bytes)),
    }
}

/// Lets the sender prove that it has the token, if one is demanded. `rest` is what it has sent after
/// its hello; the proof is taken off.
async fn admit(
    stream: &mut TcpStream,
    config: &TcpConfig,
    shared: &Shared,
    hello: Hello,
    rest: &mut BytesMut,
) -> Result<(), Option<ProtocolErrorKind>> {
    let Some(file) = &config.token_file else {
        return Ok(());
    };
    if !hello.has_token() {
        return Err(Some(ProtocolErrorKind::TokenMissing));
    }
    let read = file
        .read()
        .and_then(|token| Ok((token, security::challenge()?)));
    let (token, challenge) = read.map_err(|failure| {
        shared.push_failure(failure);
        None
    })?;
    stream.write_all(&challenge).await.map_err(|_| None)?;
    while rest.len() < PROOF_BYTES {
        if stream.read_buf(rest).await.map_err(|_| None)? == 0 {
            return Err(None);
        }
    }
    let proof = rest.split_to(PROOF_BYTES);
    let proved = token.is_proved(hello, config.hello(Role::Receiver), &challenge, &proof);
    let answer = if proved { ACCEPTED } else { REFUSED };
    stream.write_all(&[answer]).await.map_err(|_| None)?;
    if proved {
        Ok(())
    } else {
        Err(Some(ProtocolErrorKind::Token))
    }
}

/// Reads and acknowledges at the same time until one of the two ends.
async fn converse(
    stream: &mut TcpStream,
    config: &TcpConfig,
    shared: &Shared,
    connection: &Arc<Connection>,
    hello: &Hello,
    buffer: BytesMut,
    stop: watch::Receiver<Option<Instant>>,
) -> End {
    let silence = silence(hello);
    let limits = config.hello(Role::Receiver).limits.min(hello.limits);
    let proof = config.token_file.as_ref().map_or(0, |_| PROOF_BYTES);
    let offset = u64::try_from(Hello::BYTES + proof).unwrap_or_default();
    let (read, write) = stream.split();
    let receiving = Receiving {
        read,
        shared,
        connection,
        incoming: Incoming::new(limits, offset),
        window_chunks: u64::from(limits.window_chunks),
        silence,
        patience: config.patience(),
        spent: Duration::ZERO,
        buffer,
        batch: Vec::new(),
        arriving: Arriving::default(),
    };
    let result = tokio::select! {
        result = receiving.run() => result,
        result = acknowledge(write, connection, config.heartbeat, silence, stop) => result,
    };
    match result {
        Ok(end) | Err(end) => end,
    }
}

/// The reading half of a connection.
struct Receiving<'a> {
    read: ReadHalf<'a>,
    shared: &'a Shared,
    connection: &'a Arc<Connection>,
    incoming: Incoming,
    window_chunks: u64,
    /// How long the sender may be silent between frames: it says so itself.
    silence: Duration,
    /// How long it may be silent in the middle of a frame, which takes memory.
    patience: Duration,
    /// How long this side has waited for the rest of the frame.
    spent: Duration,
    buffer: BytesMut,
    /// Complete chunks that the owner does not have yet.
    batch: Vec<Pending>,
    /// Memory for the chunk that has arrived in part, beyond the first [`READ_BYTES`].
    arriving: Arriving,
}

impl Receiving<'_> {
    async fn run(mut self) -> Result<End, End> {
        let result = self.read_frames().await;
        self.shared.push(&mut self.batch);
        result
    }

    async fn read_frames(&mut self) -> Result<End, End> {
        loop {
            match self.incoming.next(&mut self.buffer) {
                Ok(Step::Chunk(sequence, meta, bytes)) => {
                    let limit = self
                        .connection
                        .watermark()
                        .saturating_add(self.window_chunks);
                    if sequence >= limit {
                        let chunks = self.window_chunks;
                        return Err(self.broken(ProtocolErrorKind::Window { chunks }));
                    }
                    let memory = match self.shared.try_reserve(self.connection, bytes.len()) {
                        None => {
                            // The owner needs what is there to make room.
                            self.shared.push(&mut self.batch);
                            self.shared.reserve(self.connection, bytes.len()).await
                        }
                        memory => memory,
                    };
                    self.arriving = Arriving::default();
                    self.spent = Duration::ZERO;
                    if let Some(memory) = memory {
                        let chunk = (sequence, meta, bytes);
                        self.batch
                            .push(Pending::new(self.connection, chunk, memory));
                    }
                }
                Ok(Step::Heartbeat) => self.spent = Duration::ZERO,
                Ok(Step::Bye) => return Ok(End::Bye),
                Ok(Step::More(missing)) => {
                    self.shared.push(&mut self.batch);
                    self.read_more(missing).await?;
                }
                Err(error) => {
                    let length = match error.kind {
                        ProtocolErrorKind::Checksum { .. } => self.buffer.len(),
                        _ => self.buffer.len().min(DAMAGED_BYTES),
                    };
                    return Err(End::Broken(error, self.buffer.split_to(length).freeze()));
                }
            }
        }
    }

    async fn read_more(&mut self, missing: usize) -> Result<(), End> {
        let held = self.buffer.len();
        let part = missing.min(READ_BYTES);
        if held + part > READ_BYTES + self.arriving.bytes {
            self.shared
                .reserve_part(&mut self.arriving, READ_BYTES)
                .await;
        }
        let room = self.buffer.capacity() - held;
        if room < part || room < LEAST_ROOM {
            // As much as has arrived, never as much as is only announced: memory that grows with
            // what the sender has sent, and few copies.
            self.buffer.reserve(missing.min(held).max(READ_BYTES));
        }
        let most = (READ_BYTES + self.arriving.bytes).saturating_sub(held);
        let mut read = (&mut self.read).take(u64::try_from(most).unwrap_or(u64::MAX));
        let reading = read.read_buf(&mut self.buffer);
        let read = if held == 0 && self.incoming.is_between_frames() {
            time::timeout(self.silence, reading).await??
        } else {
            let frame = u32::try_from(held + missing).unwrap_or(u32::MAX);
            let all = self.patience + Duration::from_secs(1) * frame / LEAST_BYTES_PER_SECOND;
            let limit = all.saturating_sub(self.spent).min(self.patience);
            let began = Instant::now();
            let read = time::timeout(limit.min(self.silence), reading).await??;
            self.spent += began.elapsed();
            read
        };
        // The sender has what was cut off: it is no damage.
        if read > 0 { Ok(()) } else { Err(End::Lost) }
    }

    fn broken(&mut self, kind: ProtocolErrorKind) -> End {
        let error = ProtocolError {
            offset: self.incoming.offset(),
            reading: "a chunk",
            kind,
        };
        let length = self.buffer.len().min(DAMAGED_BYTES);
        End::Broken(error, self.buffer.split_to(length).freeze())
    }
}

/// Tells the sender how far its chunks are settled, and that this side is there.
async fn acknowledge(
    mut write: WriteHalf<'_>,
    connection: &Connection,
    heartbeat: Duration,
    silence: Duration,
    mut stop: watch::Receiver<Option<Instant>>,
) -> Result<End, End> {
    let mut told = 0;
    loop {
        let mut stopping = false;
        let mut due = false;
        tokio::select! {
            _ = stop.changed() => stopping = true,
            waited = time::timeout(heartbeat, connection.moved.notified()) => due = waited.is_err(),
        }
        let watermark = connection.watermark();
        let mut bytes = Vec::new();
        if watermark > told {
            told = watermark;
            FrameHeader::short(FrameKind::Acknowledgement, watermark).write(&mut bytes);
        } else if due {
            FrameHeader::short(FrameKind::Heartbeat, 0).write(&mut bytes);
        }
        if stopping {
            FrameHeader::short(FrameKind::Bye, 0).write(&mut bytes);
        }
        time::timeout(silence, write.write_all(&bytes)).await??;
        if stopping {
            return Ok(End::Stopped);
        }
    }
}
