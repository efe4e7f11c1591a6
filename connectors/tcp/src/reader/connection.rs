//! One sender: admission, chunks in, acknowledgements out.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_common::number::to_u64;
use baler_common::transport::{Damaged, Origin};
use bytes::BytesMut;
use tokio::io::{AsyncReadExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time;

use super::admission::{End, LEAST_ROOM, Settings, farewell, greet, secure};
use super::progress::Connection;
use super::state::{Arriving, Pending, ReaderState};
use crate::client::{Stream, send};
use crate::config::{TcpConfig, silence};
use crate::error::ProtocolErrorKind;
use crate::framing::{Incoming, Step};
use crate::headers::{FrameHeader, FrameKind, Hello, Role};
use crate::security::{PROOF_BYTES, Proof};

/// The least room that is made for a read: several small chunks share one allocation.
const READ_BYTES: usize = 64 << 10;

/// The lowest rate at which a frame must arrive, once it has begun and while this side reads.
const LEAST_BYTES_PER_SECOND: u32 = 16 << 10;

/// The most bytes that are kept of a damaged connection. Of a chunk with a wrong checksum all are
/// kept.
const DAMAGED_BYTES: usize = 64 << 10;

/// Serves one sender until either side ends.
pub(super) async fn serve(
    socket: TcpStream,
    peer: SocketAddr,
    settings: Arc<Settings>,
    state: Arc<ReaderState>,
    mut stop: watch::Receiver<Option<Instant>>,
) {
    let config = &settings.config;
    let endpoint: Box<str> = format!("{}://{peer}", config.scheme()).into();
    let greeted = async {
        let (mut stream, proof) = secure(socket, &settings).await?;
        let (hello, rest) = greet(&mut *stream, config, &state).await?;
        Ok((stream, proof, hello, rest))
    };
    let end = tokio::select! {
        greeted = greeted => match greeted {
            Ok((stream, proof, hello, rest)) => {
                state.count(|stats| stats.connections += 1);
                let proof = match proof {
                    Proof::None if config.has_token() => Proof::Token,
                    proof => proof,
                };
                // Shorter than this side waits for a sender: a sender that comes back takes over
                // the identity of its lost connection before that one ends.
                let presumed_alive = silence(&hello).min(config.patience()) * 2 / 3;
                let connection =
                    Arc::new(Connection::new(endpoint.clone(), proof, presumed_alive));
                let end = converse(stream, config, &state, &connection, &hello, rest, stop).await;
                connection.set_gone();
                state.claims.release(&connection);
                end
            }
            Err(end) => end,
        },
        _ = stop.changed() => End::Stopped,
    };
    match end {
        End::Bye | End::Stopped => {}
        End::Lost => state.count(|stats| stats.connections_lost += 1),
        End::Broken(error, bytes) => {
            state.count(|stats| {
                stats.connections_lost += 1;
                stats.connections_refused += u64::from(error.kind.is_refusal());
            });
            state.push_damaged(Damaged {
                token: None,
                bytes,
                origin: Origin {
                    endpoint,
                    lane: peer.to_string().into(),
                    position: error.offset,
                },
                reason: error.to_string().into(),
                peer: Some(peer.ip()),
            });
        }
    }
}

/// Reads and acknowledges at the same time until one of the two ends.
async fn converse(
    stream: Box<dyn Stream>,
    config: &TcpConfig,
    state: &ReaderState,
    connection: &Arc<Connection>,
    hello: &Hello,
    buffer: BytesMut,
    stop: watch::Receiver<Option<Instant>>,
) -> End {
    let silence = silence(hello);
    let limits = config.hello(Role::Receiver).limits.min(hello.limits);
    let proof = if config.has_token() { PROOF_BYTES } else { 0 };
    let offset = to_u64(Hello::BYTES + proof);
    let (mut read, mut write) = tokio::io::split(stream);
    let receiving = Receiving {
        read: &mut read,
        state,
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
        result = acknowledge(&mut write, connection, config.heartbeat(), silence, stop) => result,
    };
    let (Ok(end) | Err(end)) = result;
    if let End::Broken(error, _) = &end {
        if matches!(error.kind, ProtocolErrorKind::IdentityInUse { .. }) {
            let mut frame = Vec::new();
            FrameHeader::short(FrameKind::Refusal, 0).write(&mut frame);
            farewell(&mut read.unsplit(write), &frame).await;
        }
    }
    end
}

/// The reading half of a connection.
struct Receiving<'a> {
    read: &'a mut ReadHalf<Box<dyn Stream>>,
    state: &'a ReaderState,
    connection: &'a Arc<Connection>,
    incoming: Incoming,
    window_chunks: u64,
    /// The longest silence of the sender between frames, from its hello.
    silence: Duration,
    /// The longest silence of the sender within a frame, which takes memory.
    patience: Duration,
    /// The time that this side has waited for the rest of the frame.
    spent: Duration,
    buffer: BytesMut,
    /// Complete chunks that were not passed to the owner yet.
    batch: Vec<Pending>,
    /// Memory for the chunk that has arrived in part, beyond the first [`READ_BYTES`].
    arriving: Arriving,
}

impl Receiving<'_> {
    /// Reads until the connection ends. Both halves of the result are the end: `?` leaves early.
    async fn run(mut self) -> Result<End, End> {
        let result = self.read_frames().await;
        self.state.push(&mut self.batch);
        result
    }

    async fn read_frames(&mut self) -> Result<End, End> {
        loop {
            match self.incoming.next(&mut self.buffer) {
                Ok(Step::Chunk(sequence, meta, bytes)) => {
                    if sequence >= self.connection.watermark() + self.window_chunks {
                        let chunks = self.window_chunks;
                        return Err(self.broken(ProtocolErrorKind::Window { chunks }));
                    }
                    let claim = self.state.claims.claim(meta.identity, self.connection);
                    if let Err(holder) = claim {
                        let producer = meta.identity.producer;
                        let kind = ProtocolErrorKind::IdentityInUse { producer, holder };
                        return Err(self.broken(kind));
                    }
                    let waits = !self.state.has_room(self.connection, bytes.len());
                    if waits {
                        // The owner needs these chunks to make room.
                        self.state.push(&mut self.batch);
                        self.connection.note_pause();
                    }
                    let memory = self.state.reserve(self.connection, bytes.len()).await;
                    if waits {
                        self.connection.note_read();
                    }
                    self.arriving = Arriving::default();
                    self.spent = Duration::ZERO;
                    let chunk = (sequence, meta, bytes);
                    self.batch
                        .push(Pending::new(self.connection, chunk, memory));
                }
                Ok(Step::Heartbeat) => self.spent = Duration::ZERO,
                Ok(Step::Bye) => return Ok(End::Bye),
                Ok(Step::More(missing)) => {
                    self.state.push(&mut self.batch);
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
        while held + part > READ_BYTES + self.arriving.bytes {
            self.connection.note_pause();
            self.state
                .reserve_part(&mut self.arriving, READ_BYTES)
                .await;
            self.connection.note_read();
        }
        let room = self.buffer.capacity() - held;
        if room < part || room < LEAST_ROOM {
            // Reserve as much as has arrived, never as much as is only announced. So memory grows
            // with the bytes that were sent, and few bytes are copied.
            self.buffer.reserve(missing.min(held).max(READ_BYTES));
        }
        let most = READ_BYTES + self.arriving.bytes - held;
        let mut read = (&mut *self.read).take(to_u64(most));
        let reading = read.read_buf(&mut self.buffer);
        let read = if held == 0 && self.incoming.is_between_frames() {
            time::timeout(self.silence, reading).await??
        } else {
            let frame = Duration::from_secs(to_u64(held + missing)) / LEAST_BYTES_PER_SECOND;
            let all = self.patience + frame;
            let limit = all.saturating_sub(self.spent).min(self.patience);
            let began = Instant::now();
            let read = time::timeout(limit.min(self.silence), reading).await??;
            self.spent += began.elapsed();
            read
        };
        // The sender still has the chunk that was cut off, so this is no damage.
        if read == 0 {
            return Err(End::Lost);
        }
        self.connection.note_read();
        Ok(())
    }

    fn broken(&mut self, kind: ProtocolErrorKind) -> End {
        let error = kind.at(self.incoming.offset(), "a chunk");
        let length = self.buffer.len().min(DAMAGED_BYTES);
        End::Broken(error, self.buffer.split_to(length).freeze())
    }
}

/// Sends acknowledgements of settled chunks, and heartbeats.
async fn acknowledge(
    write: &mut WriteHalf<Box<dyn Stream>>,
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
        time::timeout(silence, send(write, &bytes)).await??;
        if stopping {
            return Ok(End::Stopped);
        }
    }
}
