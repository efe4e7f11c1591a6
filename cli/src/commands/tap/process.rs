//! The chunks that pass through a running command, from the `/tap` of its `--metrics` address.
//!
//! HTTP body -> frames, on a thread -> bounded channel -> [`ProcessTap`], a reader like any other

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::transport::{
    ChunkReader, Delivery, Order, Origin, ReaderCapability, ReaderCloseReport, Received,
    RetryClass, Settled, Token, TransportError, Verdict,
};
use bytes::Bytes;
use hyper::StatusCode;

use crate::exit::{Code, Failure};
use crate::http_client::{self, base_url};
use crate::observe::authorization;
use crate::observe::tap::{CHUNK_FRAME, FRAME_HEAD, SKIPPED_FRAME};
use crate::shutdown::time_until;

/// The maximum number of chunks that wait here. The process keeps further chunks, and skips them
/// when it must.
const AHEAD: usize = 4;

/// The largest accepted chunk.
const MAX_CHUNK_BYTES: u64 = 64 << 20;

/// The longest reason of a refusal that is read.
const MAX_REFUSAL_BYTES: usize = 64 << 10;

/// How long the process may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Reads the chunks that pass through a running command. Settling them here has no effect there.
pub(super) struct ProcessTap {
    capability: ReaderCapability,
    /// The process's address.
    pub(super) endpoint: Box<str>,
    frames: Receiver<Result<Bytes, String>>,
    /// The number of chunks that the process did not show to this tap.
    pub(super) skipped: Arc<AtomicU64>,
    demand: usize,
    held: HashSet<Token>,
    next_token: u64,
}

impl ProcessTap {
    /// Connects to the process and begins to read.
    ///
    /// # Errors
    ///
    /// The address is wrong, nobody answers, or the process refuses taps.
    pub(super) fn open(
        address: &str,
        from_start: bool,
        token_file: Option<&Path>,
    ) -> Result<Self, Failure> {
        if from_start {
            return Err(Failure::configuration(
                "--from-start is for media: a running command keeps nothing of what has passed",
            ));
        }
        let base = base_url(address)?;
        let url = format!("{base}/tap");
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(Code::Unavailable, format!("cannot tap {url}: {error}"))
        };
        let token = token_file.map(authorization).transpose()?;
        let headers: Vec<_> = token
            .iter()
            .map(|it| ("authorization", it.as_str()))
            .collect();
        let answer = http_client::get(&url, &headers, TIMEOUT).map_err(|error| failed(&error))?;
        if answer.status != StatusCode::OK {
            let status = answer.status;
            let reason = answer.text(MAX_REFUSAL_BYTES, Instant::now() + TIMEOUT);
            let reason = reason.unwrap_or_else(|error| error);
            return Err(failed(&format!("{status}: {}", reason.trim())));
        }
        let skipped = Arc::<AtomicU64>::default();
        let (sender, frames) = sync_channel(AHEAD);
        let counted = Arc::clone(&skipped);
        thread::Builder::new()
            .name("baler-tap".to_owned())
            .spawn(move || read(answer, &counted, &sender))
            .map_err(|error| failed(&error))?;
        let mut capability = ReaderCapability::new("http", Order::PerLane);
        capability.redelivers = false;
        capability.ends = true;
        Ok(Self {
            capability,
            endpoint: base.into(),
            frames,
            skipped,
            demand: usize::MAX,
            held: HashSet::new(),
            next_token: 0,
        })
    }
}

/// Reads frames until the process ends or the receiving end of the channel is dropped.
fn read(mut body: impl Read, skipped: &AtomicU64, sender: &SyncSender<Result<Bytes, String>>) {
    while let Some(frame) = frame(&mut body, skipped).transpose() {
        let is_end = frame.is_err();
        if frame.as_ref().is_ok_and(Bytes::is_empty) {
            continue;
        }
        // A dropped receiver is an end as well.
        if sender.send(frame).is_err() || is_end {
            return;
        }
    }
}

/// Reads the next frame. Returns its chunk, empty bytes for a frame of another kind, or `None` at
/// the end.
fn frame(body: &mut impl Read, skipped: &AtomicU64) -> Result<Option<Bytes>, String> {
    let broken = |error: std::io::Error| error.to_string();
    let mut kind = [0; 1];
    // A process that ends closes its connection between two frames, or within one.
    if body.read(&mut kind).map_err(broken)? == 0 {
        return Ok(None);
    }
    let mut number = [0; FRAME_HEAD - 1];
    body.read_exact(&mut number).map_err(broken)?;
    let (kind, number) = (u8::from_be_bytes(kind), u64::from_be_bytes(number));
    match kind {
        CHUNK_FRAME if number <= MAX_CHUNK_BYTES => {
            let mut chunk = Vec::new();
            let read = body.take(number).read_to_end(&mut chunk).map_err(broken)?;
            let is_whole = u64::try_from(read).ok() == Some(number);
            Ok(is_whole.then(|| chunk.into()))
        }
        SKIPPED_FRAME => {
            skipped.fetch_add(number, Ordering::Relaxed);
            Ok(Some(Bytes::new()))
        }
        CHUNK_FRAME => Err(format!("a chunk of {number} bytes")),
        kind => Err(format!("a frame of the unknown kind {kind}")),
    }
}

impl ChunkReader for ProcessTap {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, chunks: usize) {
        self.demand = chunks;
    }

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        if self.held.len() >= self.demand {
            // The owner has all the chunks that it asked for, and shows them before it asks again.
            return Ok(Received::Idle);
        }
        let bytes = match self.frames.recv_timeout(time_until(by)) {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(message)) => {
                return Err(TransportError::new(
                    "read from",
                    self.endpoint.clone(),
                    RetryClass::Final,
                    message,
                ));
            }
            Err(RecvTimeoutError::Timeout) => return Ok(Received::Idle),
            Err(RecvTimeoutError::Disconnected) => return Ok(Received::End),
        };
        let token = Token(self.next_token);
        self.next_token = self.next_token.wrapping_add(1);
        self.held.insert(token);
        Ok(Received::Chunk(Delivery {
            token,
            bytes,
            meta: None,
            origin: Origin {
                endpoint: self.endpoint.clone(),
                lane: "tap".into(),
                position: token.0,
            },
            redelivered: false,
            attempts: 0,
        }))
    }

    fn settle(&mut self, token: Token, _: Verdict) -> Result<Settled, TransportError> {
        Ok(if self.held.remove(&token) {
            Settled::Done
        } else {
            Settled::Stale
        })
    }

    fn close(self: Box<Self>, _: Instant) -> ReaderCloseReport {
        ReaderCloseReport {
            unsettled: self.held.len(),
            error: None,
            unreported: 0,
        }
    }
}
