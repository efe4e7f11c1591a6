//! The thread of a connection: writes offered chunks and reads acknowledgements.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice};
use std::time::{Duration, Instant};

use baler_common::number::to_u64;
use baler_common::transport::Failure;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader, ReadHalf, WriteHalf};
use tokio::{runtime, time};

use super::state::{ConnectionState, Work};
use crate::client::{self, Connected, Stream};
use crate::config::TcpConfig;
use crate::error::ProtocolErrorKind;
use crate::framing::Outgoing;
use crate::headers::{FrameHeader, FrameKind, Hello};

/// Connects before `by`, opens the writer, and serves the connection until it ends.
pub(super) fn run(config: &TcpConfig, state: &ConnectionState, by: Instant) -> Result<(), Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::of_io("set up", &error))?;
    let served = runtime.block_on(async {
        let connected = time::timeout_at(by.into(), client::connect(config)).await;
        let late = |_| Err(Failure::retry("connect to", "no answer in time"));
        let connected = connected.unwrap_or_else(late)?;
        state.open(connected.limits);
        serve(connected, state, config.heartbeat()).await
    });
    // Do not wait for a name lookup that is still running.
    runtime.shutdown_background();
    served
}

/// Writes and reads at the same time until the last frame is sent or the connection ends.
async fn serve(
    connected: Connected,
    state: &ConnectionState,
    heartbeat: Duration,
) -> Result<(), Failure> {
    let (read, write) = tokio::io::split(connected.stream);
    tokio::select! {
        sent = send(write, state, heartbeat) => sent,
        failure = receive(read, state, connected.silence) => Err(failure),
        // The owner closes.
        () = state.failed() => Ok(()),
    }
}

/// Writes offered chunks until the owner closes and everything is acknowledged.
async fn send(
    mut write: WriteHalf<Box<dyn Stream>>,
    state: &ConnectionState,
    heartbeat: Duration,
) -> Result<(), Failure> {
    let fail = |error| Failure::of_io("write to", &error);
    let mut outgoing = Outgoing::default();
    let mut chunks = VecDeque::new();
    loop {
        let work = time::timeout(heartbeat, state.work(&mut chunks)).await;
        match work {
            Ok(Work::Write) => chunks.drain(..).for_each(|chunk| outgoing.push(&chunk)),
            Ok(Work::Bye) => outgoing.push_short(FrameKind::Bye),
            Err(_) => outgoing.push_short(FrameKind::Heartbeat),
        }
        let mut slices = outgoing.slices();
        let mut left = slices.as_mut_slice();
        while !left.is_empty() {
            match write.write_vectored(left).await.map_err(fail)? {
                0 => return Err(fail(ErrorKind::WriteZero.into())),
                written => IoSlice::advance_slices(&mut left, written),
            }
        }
        write.flush().await.map_err(fail)?;
        drop(slices);
        outgoing.clear();
        if matches!(work, Ok(Work::Bye)) {
            return write.shutdown().await.map_err(fail);
        }
    }
}

/// Reads the receiver's frames until the connection ends. Returns the reason of the end.
async fn receive(
    read: ReadHalf<Box<dyn Stream>>,
    state: &ConnectionState,
    silence: Duration,
) -> Failure {
    let mut offset = to_u64(Hello::BYTES);
    let mut frame = [0; FrameHeader::BYTES];
    // Acknowledgements are counts: room for 146 of them is ample.
    let mut read = BufReader::with_capacity(4096, read);
    let mut confirmed = false;
    loop {
        // One notification for all acknowledgements that came together.
        if confirmed && read.buffer().len() < frame.len() {
            state.tell_confirmed();
            confirmed = false;
        }
        let broken =
            |kind: ProtocolErrorKind| Failure::from(&kind.at(offset, "the receiver's frames"));
        match time::timeout(silence, read.read_exact(&mut frame)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) if error.kind() == ErrorKind::UnexpectedEof => {
                return Failure::retry("read from", "the receiver closed the connection");
            }
            Ok(Err(error)) => return Failure::of_io("read from", &error),
            Err(_) => {
                let milliseconds = silence.as_millis();
                return broken(ProtocolErrorKind::Silence { milliseconds });
            }
        }
        match take(&frame, state) {
            Ok(Some(moved)) => confirmed |= moved,
            Ok(None) => return Failure::retry("read from", "the receiver is closing"),
            Err(kind) => return broken(kind),
        }
        offset += to_u64(frame.len());
    }
}

/// Processes a frame. Returns whether it confirms chunks, or nothing if it is the last frame.
fn take(
    frame: &[u8; FrameHeader::BYTES],
    state: &ConnectionState,
) -> Result<Option<bool>, ProtocolErrorKind> {
    let header = FrameHeader::read(frame)?;
    match header.kind {
        FrameKind::Acknowledgement => {
            let found = header.sequence;
            let moved = state.acknowledge(found);
            moved
                .map(Some)
                .map_err(|(low, high)| ProtocolErrorKind::Acknowledgement { found, low, high })
        }
        FrameKind::Heartbeat => Ok(Some(false)),
        FrameKind::Bye => Ok(None),
        FrameKind::Chunk => Err(ProtocolErrorKind::Invalid { found: 1 }),
        FrameKind::Refusal => Err(ProtocolErrorKind::Refused),
    }
}
