//! One connection between a client and a broker, frame by frame.

use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use super::KafkaProxyState;
use super::protocol::{self, Asked};
use super::splice::{read_frame, write_frame};

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
    match protocol::asked(request) {
        Some((_, asked)) => rewrite(asked, &answer, shared),
        None => Ok(answer),
    }
}

fn rewrite(asked: Asked, answer: &[u8], shared: &Arc<KafkaProxyState>) -> io::Result<Vec<u8>> {
    let mut other = |host: &str, port: i32| shared.instead_of(host, port);
    let rewritten = protocol::rewrite(asked, answer, shared.sasl.is_some(), &mut other);
    rewritten.ok_or_else(|| io::ErrorKind::InvalidData.into())
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
        conversation.lock().asked.extend(protocol::asked(&frame));
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
        let number = protocol::answered(&frame);
        let asked = number.and_then(|number| conversation.lock().asked.remove(&number));
        let throttle = shared.throttle();
        match asked {
            Some(asked) if !asked.is_counted() => frame = rewrite(asked, &frame, shared)?,
            Some(asked) if throttle.as_millis() > 0 => {
                let millis = i32::try_from(throttle.as_millis()).unwrap_or(i32::MAX);
                let answer = protocol::throttled(asked, &frame, millis);
                frame = answer.ok_or(io::ErrorKind::InvalidData)?;
                conversation.lock().muted = Some(Instant::now() + throttle);
            }
            _ => {}
        }
        write_frame(&mut client, &frame)?;
    }
}
