//! One connection between a client and a broker, frame by frame.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use super::KafkaProxyState;
use super::protocol::Asked;

/// The largest frame; clients accept responses of up to 100 MB.
const MAX_FRAME: usize = 128 << 20;

/// The state that the two directions of a connection share.
#[derive(Default)]
struct Conversation(Mutex<ConversationState>);

#[derive(Default)]
struct ConversationState {
    /// Requests whose answers must be changed, by number.
    asked: HashMap<i32, Asked>,
    /// The time until which the client is not read.
    muted: Option<Instant>,
}

impl Conversation {
    fn lock(&self) -> MutexGuard<'_, ConversationState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Relays between a client and its broker until one of them ends.
pub(super) fn serve(
    client: &TcpStream,
    broker: &TcpStream,
    shared: &Arc<KafkaProxyState>,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    broker.set_nodelay(true)?;
    if let Some(sasl) = &shared.sasl {
        sasl.admit(client, |request| ask(request, broker, shared))?;
    }
    let conversation = Conversation::default();
    // When one direction ends, for any reason, the connection is over.
    thread::scope(|scope| {
        scope.spawn(|| {
            responses(broker, client, &conversation, shared).ok();
            end([client, broker]);
        });
        requests(client, broker, &conversation).ok();
        end([client, broker]);
    });
    Ok(())
}

/// Lets the broker answer one request, before any other request.
fn ask(
    request: &[u8],
    mut broker: &TcpStream,
    shared: &Arc<KafkaProxyState>,
) -> io::Result<Vec<u8>> {
    write_frame(&mut broker, request)?;
    let answer = read_frame(&mut broker)?;
    match Asked::read(request) {
        Some((asked, _)) => asked.rewrite(answer, shared),
        None => Ok(answer),
    }
}

fn end(streams: [&TcpStream; 2]) {
    for stream in streams {
        // It may have ended already.
        stream.shutdown(Shutdown::Both).ok();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "to be held back is what was asked for"
)]
fn requests(
    mut client: &TcpStream,
    mut broker: &TcpStream,
    conversation: &Conversation,
) -> io::Result<()> {
    loop {
        let frame = read_frame(&mut client)?;
        let muted = conversation.lock().muted.take();
        if let Some(until) = muted {
            thread::sleep(until.saturating_duration_since(Instant::now()));
        }
        if let Some((asked, _)) = Asked::read(&frame)
            && (asked.is_rewritten() || asked.is_counted())
        {
            conversation.lock().asked.insert(asked.number, asked);
        }
        write_frame(&mut broker, &frame)?;
    }
}

fn responses(
    mut broker: &TcpStream,
    mut client: &TcpStream,
    conversation: &Conversation,
    shared: &Arc<KafkaProxyState>,
) -> io::Result<()> {
    loop {
        let mut frame = read_frame(&mut broker)?;
        // The number of the answered request.
        let number = frame
            .first_chunk()
            .map(|number| i32::from_be_bytes(*number));
        let asked = number.and_then(|number| conversation.lock().asked.remove(&number));
        let throttle = shared.throttle();
        match asked {
            Some(asked) if asked.is_rewritten() => frame = asked.rewrite(frame, shared)?,
            Some(asked) if throttle.as_millis() > 0 => {
                let millis = i32::try_from(throttle.as_millis()).expect("a test waits for it");
                frame = asked.throttle(&frame, millis)?;
                conversation.lock().muted = Some(Instant::now() + throttle);
            }
            _ => {}
        }
        write_frame(&mut client, &frame)?;
    }
}

/// Reads a frame. Returns it without its length.
pub(super) fn read_frame(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = usize::try_from(i32::from_be_bytes(length))
        .ok()
        .filter(|length| *length <= MAX_FRAME)
        .ok_or(io::ErrorKind::InvalidData)?;
    let mut frame = Vec::new();
    let read = from.take(length as u64).read_to_end(&mut frame)?;
    if read < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(frame)
}

/// Writes a frame in one piece.
pub(super) fn write_frame(to: &mut impl Write, frame: &[u8]) -> io::Result<()> {
    let length = i32::try_from(frame.len()).map_err(|_| io::ErrorKind::InvalidData)?;
    let mut whole = Vec::with_capacity(frame.len() + 4);
    whole.extend_from_slice(&length.to_be_bytes());
    whole.extend_from_slice(frame);
    to.write_all(&whole)?;
    to.flush()
}
