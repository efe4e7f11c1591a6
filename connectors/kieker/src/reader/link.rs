//! The commands of one sender: passes them to the bridge, and sends what the bridge decides.
//!
//! Nothing is sent before a Hello, so that a sender without commands never gets a byte.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time;

use crate::adaptive::wire::{self, Command, Decoder, From, Step, Version, id};
use crate::adaptive::{Bridge, ErrorCode, PeerId, WireError};

/// How long a sender may take to read the last error.
const FAREWELL: Duration = Duration::from_secs(1);

/// The commands of one sender.
#[derive(Debug)]
pub(super) struct AdaptiveLink {
    bridge: Arc<Bridge>,
    address: SocketAddr,
    decoder: Decoder,
    /// The sending half, until the Hello.
    idle: Option<OwnedWriteHalf>,
    program: Option<Connected>,
    /// Whether an error is to be sent before the end.
    has_failed: bool,
}

/// A sender that has said Hello.
#[derive(Debug)]
struct Connected {
    peer: PeerId,
    sending: JoinHandle<()>,
}

/// The result of [`AdaptiveLink::take`].
pub(super) enum Taken {
    /// This number of bytes.
    Bytes(usize),
    /// Nothing; at least this number of bytes is needed.
    More(usize),
}

impl AdaptiveLink {
    pub(super) fn new(answers: OwnedWriteHalf, address: SocketAddr, bridge: Arc<Bridge>) -> Self {
        Self {
            bridge,
            address,
            decoder: Decoder::new(Version::V2, From::Program),
            idle: Some(answers),
            program: None,
            has_failed: false,
        }
    }

    /// Whether the item at the start of `input` is a command. After a Hello every item is that is
    /// neither a registration nor a record.
    pub(super) fn is_command(&self, input: &[u8]) -> bool {
        let id = input.first_chunk().copied().map(i32::from_be_bytes);
        id.is_some_and(|id| {
            id < -1 && (self.program.is_some() || (id::LAST..=id::SIGNATURE).contains(&id))
        })
    }

    /// Whether entries of a batch are missing.
    pub(super) fn is_within_batch(&self) -> bool {
        self.decoder.is_within_batch()
    }

    /// Returns the memory that the bridge keeps for this sender.
    pub(super) fn memory(&self) -> usize {
        let program = self.program.as_ref();
        program.map_or(0, |it| self.bridge.memory(it.peer))
    }

    /// Takes a command or an entry, which begins at this offset of the stream.
    ///
    /// # Errors
    ///
    /// The connection must end.
    pub(super) fn take(&mut self, input: &[u8], offset: usize) -> Result<Taken, Box<str>> {
        let taken = match self.decoder.step(input) {
            Ok(Step::More(needed)) => return Ok(Taken::More(needed)),
            Ok(Step::Entries(taken)) if self.program.is_some() => Ok(taken),
            Ok(Step::Entries(_)) => Err(not_allowed("a command before a Hello")),
            Ok(Step::Command(command, taken)) => self.command(command).map(|()| taken),
            Err(error) => Err(error),
        };
        taken.map(Taken::Bytes).map_err(|mut error| {
            error.offset += offset;
            let reason = error.to_string();
            if let Some(program) = &self.program {
                self.has_failed = true;
                let peer = program.peer;
                self.bridge.with_peer(peer, |it| it.farewell = Some(error));
            }
            reason.into()
        })
    }

    fn command(&mut self, command: Command) -> Result<(), WireError> {
        let Some(program) = &self.program else {
            return match command {
                Command::Hello(hello) => self.connect(hello),
                _ => Err(not_allowed("a command before a Hello")),
            };
        };
        let peer = program.peer;
        match command {
            Command::Request { slot, signature } => self.bridge.request(peer, slot, &signature)?,
            Command::Ping(nonce) => self.bridge.with_peer(peer, |it| it.ping = Some(nonce)),
            Command::Stats(stats) => self.bridge.with_peer(peer, |it| it.stats = Some(stats)),
            Command::Hello(_) => return Err(not_allowed("a second Hello")),
            // Nothing follows from them. The sender closes the connection after an error or a Bye.
            Command::Error { .. } | Command::Pong(_) | Command::Bye(_) | Command::Framed(_) => {}
            Command::Snapshot(_) | Command::Update { .. } => {
                return Err(not_allowed("a command of the other end"));
            }
        }
        Ok(())
    }

    fn connect(&mut self, hello: wire::Hello) -> Result<(), WireError> {
        let Some(mut half) = self.idle.take() else {
            return Err(not_allowed("a second Hello"));
        };
        let wake = Arc::new(Notify::new());
        let peer = match self.bridge.connect(hello, self.address, &wake) {
            Ok(peer) => peer,
            Err(error) => {
                let mut answer = Vec::new();
                wire::push_error(error.code, None, &error.to_string(), &mut answer);
                // Nothing was sent before, so that the socket has room for it.
                half.try_write(&answer).ok();
                self.idle = Some(half);
                self.has_failed = true;
                return Err(error);
            }
        };
        let bridge = Arc::clone(&self.bridge);
        let sending = tokio::spawn(async move {
            let mut bytes = Vec::new();
            loop {
                bytes.clear();
                let goes_on = bridge.next(peer, &mut bytes);
                if bytes.is_empty() {
                    wake.notified().await;
                } else if half.write_all(&bytes).await.is_err() {
                    // The reading half finds the same.
                    return;
                }
                if !goes_on {
                    half.shutdown().await.ok();
                    return;
                }
            }
        });
        self.program = Some(Connected { peer, sending });
        Ok(())
    }

    /// Sends the last error, if there is one, and waits until the sender has read it or ended.
    pub(super) async fn finish(&mut self, records: &mut OwnedReadHalf) {
        if !self.has_failed {
            return;
        }
        let read = async {
            if let Some(program) = &mut self.program {
                (&mut program.sending).await.ok();
            }
            if let Some(half) = &mut self.idle {
                half.shutdown().await.ok();
            }
            // The operating system discards the error if bytes of the sender are left unread.
            let mut rest = [0; 4_096];
            while records.read(&mut rest).await.is_ok_and(|read| read > 0) {}
        };
        time::timeout(FAREWELL, read).await.ok();
    }
}

impl Drop for AdaptiveLink {
    fn drop(&mut self) {
        if let Some(program) = &self.program {
            program.sending.abort();
            self.bridge.disconnect(program.peer);
        }
    }
}

fn not_allowed(reading: &'static str) -> WireError {
    WireError {
        code: ErrorCode::NotAllowed,
        offset: 0,
        slot: None,
        reading,
    }
}
