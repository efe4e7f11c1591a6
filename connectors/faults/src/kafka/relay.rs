//! One connection between a client and a broker, frame by frame.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use super::KafkaProxyState;
use super::protocol::{self, Asked};
use super::splice::{read_frame, write_frame};

/// Requests whose answers are to be rewritten, by number.
type Open = Arc<Mutex<HashMap<i32, Question>>>;

/// A request whose answer is to be rewritten.
enum Question {
    Names(Asked),
    Counted(Asked),
}

/// Until when a connection is not read from.
type Muted = Arc<Mutex<Option<Instant>>>;

/// Relays between a client and its broker in threads of their own.
pub(super) fn start(
    client: TcpStream,
    broker: TcpStream,
    shared: &Arc<KafkaProxyState>,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    broker.set_nodelay(true)?;
    let ends = [client.try_clone()?, broker.try_clone()?];
    let (mut from_client, mut to_client) = shared.split(client)?;
    let (mut from_broker, mut to_broker) = (broker.try_clone()?, broker);
    let [client, broker] = ends;
    let over = [client.try_clone()?, broker.try_clone()?];
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        let ask = |request: &[u8]| ask(request, &mut from_broker, &mut to_broker, &shared);
        if shared.admit(&mut from_client, &mut to_client, ask).is_ok() {
            let open = Open::default();
            let asked = Arc::clone(&open);
            let muted = Muted::default();
            let muting = Arc::clone(&muted);
            let answering = Arc::clone(&shared);
            thread::spawn(move || {
                responses(from_broker, to_client, &open, &muting, &answering).ok();
                end(&[client, broker]);
            });
            // However it ends, the connection is over.
            requests(from_client, to_broker, &asked, &muted).ok();
        }
        end(&over);
    });
    Ok(())
}

/// Has the broker answer one request, before anything else is asked.
fn ask(
    request: &[u8],
    from: &mut impl Read,
    to: &mut impl Write,
    shared: &Arc<KafkaProxyState>,
) -> io::Result<Vec<u8>> {
    write_frame(to, request)?;
    let answer = read_frame(from)?;
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

fn end(streams: &[TcpStream]) {
    for stream in streams {
        // It may have ended already.
        stream.shutdown(Shutdown::Both).ok();
    }
}

fn requests(mut from: impl Read, mut to: impl Write, open: &Open, muted: &Muted) -> io::Result<()> {
    loop {
        let frame = read_frame(&mut from)?;
        let names = protocol::asked(&frame).map(|(number, it)| (number, Question::Names(it)));
        let counted =
            || protocol::counted(&frame).map(|(number, it)| (number, Question::Counted(it)));
        let question = names.or_else(counted);
        rest_until(muted);
        if let Some((number, question)) = question {
            let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
            open.insert(number, question);
        }
        write_frame(&mut to, &frame)?;
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "to be held back is what was asked for"
)]
fn rest_until(muted: &Muted) {
    let until = muted.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(until) = until {
        thread::sleep(until.saturating_duration_since(Instant::now()));
    }
}

fn responses(
    mut from: impl Read,
    mut to: impl Write,
    open: &Open,
    muted: &Muted,
    shared: &Arc<KafkaProxyState>,
) -> io::Result<()> {
    loop {
        let mut frame = read_frame(&mut from)?;
        let question = protocol::answered(&frame).and_then(|number| {
            let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
            open.remove(&number)
        });
        match question {
            None => {}
            Some(Question::Names(asked)) => frame = rewrite(asked, &frame, shared)?,
            Some(Question::Counted(asked)) => {
                let time = shared.throttle();
                let millis = i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
                if millis > 0 {
                    let answer = protocol::throttled(asked, &frame, millis);
                    frame = answer.ok_or(io::ErrorKind::InvalidData)?;
                    let mut muted = muted.lock().unwrap_or_else(PoisonError::into_inner);
                    *muted = Some(Instant::now() + time);
                }
            }
        }
        write_frame(&mut to, &frame)?;
    }
}
