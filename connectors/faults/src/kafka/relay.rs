//! One connection between a client and a broker, frame by frame.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::Shared;
use super::protocol::{self, Asked};

/// The largest frame; clients take responses of up to 100 MB.
const MAX_FRAME: usize = 128 << 20;

/// Requests whose answers are to be rewritten, by number.
type Open = Arc<Mutex<HashMap<i32, Asked>>>;

/// Relays between a client and its broker in threads of their own.
pub(super) fn start(client: TcpStream, broker: TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    client.set_nodelay(true)?;
    broker.set_nodelay(true)?;
    let ends = [client.try_clone()?, broker.try_clone()?];
    let (from_client, to_client) = shared.split(client)?;
    let (from_broker, to_broker) = (broker.try_clone()?, broker);
    let open = Open::default();
    let asked = Arc::clone(&open);
    let [client, broker] = ends;
    let over = [client.try_clone()?, broker.try_clone()?];
    thread::spawn(move || {
        // However it ends, the connection is over.
        requests(from_client, to_broker, &asked).ok();
        end(&over);
    });
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        responses(from_broker, to_client, &open, &shared).ok();
        end(&[client, broker]);
    });
    Ok(())
}

fn end(streams: &[TcpStream]) {
    for stream in streams {
        // It may have ended already.
        stream.shutdown(Shutdown::Both).ok();
    }
}

fn requests(mut from: impl Read, mut to: impl Write, open: &Open) -> io::Result<()> {
    loop {
        let frame = read(&mut from)?;
        if let Some((number, asked)) = protocol::asked(&frame) {
            let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
            open.insert(number, asked);
        }
        write(&mut to, &frame)?;
    }
}

fn responses(
    mut from: impl Read,
    mut to: impl Write,
    open: &Open,
    shared: &Arc<Shared>,
) -> io::Result<()> {
    loop {
        let mut frame = read(&mut from)?;
        let asked = protocol::answered(&frame).and_then(|number| {
            let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
            open.remove(&number)
        });
        if let Some(asked) = asked {
            let mut other = |host: &str, port: i32| shared.instead_of(host, port);
            let rewritten = protocol::rewrite(asked, &frame, &mut other);
            frame = rewritten.ok_or(io::ErrorKind::InvalidData)?;
        }
        write(&mut to, &frame)?;
    }
}

/// A frame without its length.
fn read(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = usize::try_from(i32::from_be_bytes(length))
        .ok()
        .filter(|length| *length <= MAX_FRAME)
        .ok_or(io::ErrorKind::InvalidData)?;
    let mut frame = Vec::new();
    let read = from
        .take(u64::try_from(length).unwrap_or(u64::MAX))
        .read_to_end(&mut frame)?;
    if read < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(frame)
}

/// A frame in one piece.
fn write(to: &mut impl Write, frame: &[u8]) -> io::Result<()> {
    let length = i32::try_from(frame.len()).map_err(|_| io::ErrorKind::InvalidData)?;
    let mut whole = Vec::with_capacity(frame.len().saturating_add(4));
    whole.extend_from_slice(&length.to_be_bytes());
    whole.extend_from_slice(frame);
    to.write_all(&whole)?;
    to.flush()
}
