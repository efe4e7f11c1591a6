//! Serves one sender: reads bytes, makes chunks, and passes commands to the bridge.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use baler_common::number::to_u64;
use baler_common::random::random;
use baler_common::transport::{ChunkIdentity, Damaged, Origin, ProducerId};
use bytes::{Buf as _, BytesMut};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::watch;
use tokio::time::{self, Instant};

use super::link::{AdaptiveLink, Taken};
use super::state::{MAX_CONNECTION_MEMORY, ReaderState};
use crate::SCHEME;
use crate::container::{KiekerStream, StreamStep};
use crate::headers::{DAMAGED_BYTES, first_identity};

/// The least room for a read.
const READ_BYTES: usize = 64 << 10;

/// Serves one sender until it ends, or until the reader stops. `registry` is the second connection
/// of a sender with two sockets.
pub(super) async fn serve(
    records: TcpStream,
    registry: Option<TcpStream>,
    peer: SocketAddr,
    max_age: Duration,
    state: Arc<ReaderState>,
    mut stop: watch::Receiver<bool>,
) {
    let mut stream = match registry {
        Some(_) => KiekerStream::with_registry_apart(Arc::clone(&state.catalog)),
        None => KiekerStream::new(Arc::clone(&state.catalog)),
    };
    stream = stream.with_time_unit(state.time_unit);
    if state.unique_trace_ids {
        stream = stream.with_trace_key(random());
    }
    let (records, answers) = records.into_split();
    let mut sender = Sender {
        records,
        link: AdaptiveLink::new(answers, peer, Arc::clone(&state.bridge)),
        registry,
        stream,
        buffer: BytesMut::new(),
        registry_buffer: BytesMut::new(),
        needed: 1,
        registry_needed: 1,
        due: None,
        charged: 0,
        endpoint: format!("{SCHEME}://{peer}").into(),
        // Each connection is its own producer.
        next: first_identity(ProducerId::random()),
        max_age,
        state: &state,
    };
    let ended = tokio::select! {
        ended = sender.run() => ended,
        _ = stop.changed() => return,
    };
    let Err(reason) = ended else { return };
    sender.link.finish(&mut sender.records).await;
    let length = sender.buffer.len().min(DAMAGED_BYTES);
    state.push_damaged(Damaged {
        token: None,
        bytes: sender.buffer.split_to(length).freeze(),
        origin: Origin {
            endpoint: (*sender.endpoint).into(),
            lane: peer.to_string().into(),
            position: to_u64(sender.stream.offset()),
        },
        reason,
        peer: Some(peer.ip()),
    });
}

/// A sender, and the state of its connection.
struct Sender<'a> {
    records: OwnedReadHalf,
    link: AdaptiveLink,
    registry: Option<TcpStream>,
    stream: KiekerStream,
    buffer: BytesMut,
    registry_buffer: BytesMut,
    /// The number of bytes in the buffer below which there is no item; 0 while a record waits for
    /// its strings.
    needed: usize,
    /// The number of bytes in the buffer of strings below which there is no string.
    registry_needed: usize,
    /// The latest time at which the chunk that is being filled goes to the owner.
    due: Option<Instant>,
    /// The memory that was charged for this sender.
    charged: usize,
    endpoint: Arc<str>,
    /// The identity of the next chunk.
    next: ChunkIdentity,
    max_age: Duration,
    state: &'a ReaderState,
}

impl Drop for Sender<'_> {
    /// Gives the memory back, also after a panic, which ends this connection alone.
    fn drop(&mut self) {
        self.state.charge(self.charged, 0);
    }
}

impl Sender<'_> {
    /// Reads until the sender ends. Complete items go to the owner, whatever comes after them.
    async fn run(&mut self) -> Result<(), Box<str>> {
        let result = self.read().await;
        self.hand_over().await;
        result
    }

    async fn read(&mut self) -> Result<(), Box<str>> {
        let mut has_sent = false;
        loop {
            self.buffer.reserve(READ_BYTES);
            let waits = self.needed == 0;
            let is_due = self.due.is_some();
            let due = self.due.unwrap_or_else(Instant::now);
            tokio::select! {
                read = self.records.read_buf(&mut self.buffer), if !waits => {
                    // A connection that breaks ends as any other.
                    let Ok(bytes @ 1..) = read else {
                        self.stream.end();
                        self.cut().await?;
                        return self.ended();
                    };
                    self.state.count(|stats| {
                        stats.connections += u64::from(!has_sent);
                        stats.bytes += to_u64(bytes);
                    });
                    has_sent = true;
                }
                goes_on = read_strings(&mut self.registry, &mut self.registry_buffer) => {
                    self.register(goes_on)?;
                }
                () = time::sleep_until(due), if is_due => self.hand_over().await,
            }
            self.charge()?;
            if self.buffer.len() >= self.needed {
                self.cut().await?;
            }
        }
    }

    /// Takes the complete items out of the buffer.
    async fn cut(&mut self) -> Result<(), Box<str>> {
        loop {
            if self.link.is_within_batch() && !self.command().await? {
                break;
            }
            let (taken, step) = self.stream.cut(&self.buffer);
            self.buffer.advance(taken);
            let step = match step {
                Err(_) if self.link.is_command(&self.buffer) && self.registry.is_none() => {
                    if self.command().await? {
                        continue;
                    }
                    break;
                }
                step => step.map_err(|error| error.to_string())?,
            };
            match step {
                // `Later` does not occur: no record is later than the end of time.
                StreamStep::Full | StreamStep::Later(_) => self.hand_over().await,
                StreamStep::More(needed) => {
                    self.needed = needed;
                    break;
                }
                StreamStep::Registration(_) => {
                    self.needed = 0;
                    break;
                }
            }
        }
        if self.due.is_none() && self.stream.records() > 0 {
            self.due = Some(Instant::now() + self.max_age);
        }
        Ok(())
    }

    /// Takes the command at the start of the buffer, with its entries. Returns whether it is
    /// complete.
    async fn command(&mut self) -> Result<bool, Box<str>> {
        loop {
            match self.link.take(&self.buffer, self.stream.offset())? {
                Taken::More(needed) => {
                    self.needed = needed;
                    return Ok(false);
                }
                Taken::Bytes(bytes) => {
                    self.buffer.advance(bytes);
                    self.stream.seek(self.stream.offset() + bytes);
                }
            }
            if !self.link.is_within_batch() {
                // Text of a program that knows commands counts in bytes.
                self.stream.count_bytes();
                return Ok(true);
            }
            // Matching many signatures takes long, and all connections have one thread.
            tokio::task::yield_now().await;
        }
    }

    /// Takes the strings of the second connection, which has ended unless it `goes_on`.
    fn register(&mut self, goes_on: bool) -> Result<(), Box<str>> {
        if !goes_on {
            self.registry = None;
            self.stream.end_registry();
        }
        if self.registry_buffer.len() < self.registry_needed {
            return Ok(());
        }
        let (taken, step) = self.stream.register(&self.registry_buffer);
        self.registry_buffer.advance(taken);
        let step = step.map_err(|error| format!("the connection of the strings: {error}"))?;
        if let StreamStep::More(needed) = step {
            self.registry_needed = needed;
        }
        Ok(())
    }

    /// Returns an error if the sender ended within an item.
    fn ended(&self) -> Result<(), Box<str>> {
        let left = self.buffer.len();
        if left == 0 && !self.link.is_within_batch() {
            return Ok(());
        }
        let offset = self.stream.offset();
        let reason = format!(
            "byte {offset}: the connection ended {left} bytes into an item, which is lost; the \
             sender was killed, or its buffer is too small for the record"
        );
        Err(reason.into())
    }

    /// Passes the chunk so far to the owner.
    async fn hand_over(&mut self) {
        self.due = None;
        let Some(chunk) = self.stream.take_chunk() else {
            return;
        };
        let (meta, bytes) = chunk.for_every_consumer(&self.state.catalog, &mut self.next);
        self.state.push(bytes, meta, &self.endpoint).await;
    }

    /// Charges the memory of this sender. Returns an error if all senders together take too much.
    fn charge(&mut self) -> Result<(), Box<str>> {
        let buffers = self.buffer.len() + self.registry_buffer.len();
        let now = self.stream.memory() + buffers;
        let now = now + self.link.memory();
        let before = std::mem::replace(&mut self.charged, now);
        if self.state.charge(before, now) {
            return Ok(());
        }
        let reason = format!(
            "the strings and incomplete records of all senders are above the limit of \
             {MAX_CONNECTION_MEMORY} bytes"
        );
        Err(reason.into())
    }
}

/// Reads from the connection of the strings. Returns whether bytes came, and not its end or an
/// error. Never ends if there is no such connection.
async fn read_strings(registry: &mut Option<TcpStream>, buffer: &mut BytesMut) -> bool {
    let Some(registry) = registry else {
        return std::future::pending().await;
    };
    buffer.reserve(READ_BYTES);
    registry.read_buf(buffer).await.is_ok_and(|it| it > 0)
}
