//! Hostile senders for a receiver of the `tcp` connector: hellos and frames written by hand
//! according to its PROTOCOL.md, and a table of attacks.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use crate::chunks::ChunkSource;

/// An attack on a receiver, and its expected result.
///
/// During every attack, a correct sender beside it makes progress.
#[derive(Debug, Clone, Copy)]
pub struct Attack {
    /// The actions of the peers.
    pub name: &'static str,
    /// The receiver's demand on its senders.
    pub guard: Guard,
    /// Runs the attack. Returns the connections, which must be kept as long as the attack lasts.
    pub run: fn(SocketAddr) -> Vec<TcpStream>,
    /// The receiver's message for each connection that it refuses; none if it bears them for now.
    pub refusal: Option<&'static str>,
}

/// A receiver's demand on its senders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Nothing.
    None,
    /// TLS.
    Tls,
    /// A token.
    Token,
}

/// The producer of the live sender beside the attacks, which claim its identity.
pub const LIVE_PRODUCER: u64 = 1;

/// Attacks on a receiver, with connections that never end by themselves.
pub const ATTACKS: [Attack; 10] = [
    Attack {
        name: "frames of 16 MiB are announced, and not sent",
        guard: Guard::None,
        run: |address| stall_in_large_chunks(address, 100, 0),
        refusal: None,
    },
    Attack {
        name: "frames of 16 MiB are begun, and not ended",
        guard: Guard::None,
        run: |address| stall_in_large_chunks(address, 40, 1 << 20),
        refusal: None,
    },
    Attack {
        name: "heartbeats are announced for ten minutes, and nothing is sent",
        guard: Guard::None,
        run: |address| many(100, || greeted(address, PATIENT)),
        refusal: None,
    },
    Attack {
        name: "frames come byte by byte",
        guard: Guard::None,
        run: |address| many(10, || trickle(address)),
        refusal: None,
    },
    Attack {
        name: "the producer of a live sender is claimed",
        guard: Guard::None,
        run: |address| many(5, || forge(address)),
        refusal: Some("is sending over the connection"),
    },
    Attack {
        name: "a token is guessed",
        guard: Guard::Token,
        run: |address| {
            many(5, || {
                let mut stream = greeted(
                    address,
                    Hello {
                        features: 1,
                        ..SENDER
                    },
                );
                // The proof is a guess, so the challenge is not read.
                stream.write_all(&[7; 32]).ok();
                stream
            })
        },
        refusal: Some("the sender has another token"),
    },
    Attack {
        name: "a sender has no token",
        guard: Guard::Token,
        run: |address| many(5, || greeted(address, SENDER)),
        refusal: Some("the receiver demands a token"),
    },
    Attack {
        name: "a sender without TLS comes to a port with it",
        guard: Guard::Tls,
        run: |address| many(5, || sending(address, &SENDER.bytes())),
        refusal: Some("the TLS handshake failed"),
    },
    Attack {
        name: "peers of a port with TLS are silent",
        guard: Guard::Tls,
        run: |address| many(100, || connect(address)),
        refusal: None,
    },
    Attack {
        name: "other protocols are spoken",
        guard: Guard::None,
        run: |address| many(5, || sending(address, b"GET / HTTP/1.1\r\n\r\n")),
        refusal: Some("does not speak Baler's protocol"),
    },
];

/// A hello of a sender that may be silent for half an hour.
const PATIENT: Hello = Hello {
    max_chunk_bytes: 16 << 20,
    heartbeat_ms: 600_000,
    ..SENDER
};

fn many(peers: usize, one: impl Fn() -> TcpStream) -> Vec<TcpStream> {
    (0..peers).map(|_| one()).collect()
}

/// Opens a connection and sends these bytes.
fn sending(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = connect(address);
    stream.write_all(bytes).expect("a receiver listens");
    stream
}

/// Opens a connection on which both sides have said hello.
fn greeted(address: SocketAddr, hello: Hello) -> TcpStream {
    let mut stream = connect(address);
    greet(&mut stream, hello);
    stream
}

/// Opens connections that each announce a chunk of 16 MiB, send `sent` bytes of it, and then
/// nothing. They announce the longest possible heartbeat.
pub fn stall_in_large_chunks(address: SocketAddr, senders: usize, sent: usize) -> Vec<TcpStream> {
    many(senders, || {
        let mut stream = greeted(address, PATIENT);
        announce(&mut stream);
        // Send as much as the receiver takes.
        stream.set_nonblocking(true).expect("a socket has modes");
        let mut parts = std::iter::repeat_n([0; 1 << 10], sent >> 10);
        parts.all(|part| stream.write_all(&part).is_ok());
        stream
    })
}

/// Announces a chunk of 16 MiB.
fn announce(stream: &mut TcpStream) {
    let (good, _) = chunk(0, b"");
    let length = PATIENT.max_chunk_bytes;
    let header = Header { length, ..good };
    stream.write_all(&header.bytes()).expect("a receiver reads");
}

/// Opens a connection that sends a frame byte by byte, from a thread that ends with it.
fn trickle(address: SocketAddr) -> TcpStream {
    let mut stream = greeted(address, PATIENT);
    announce(&mut stream);
    let kept = stream.try_clone().expect("a socket can be shared");
    thread::spawn(move || {
        while stream.write_all(&[0]).is_ok() {
            thread::park_timeout(Duration::from_millis(5));
        }
    });
    kept
}

/// Opens a connection that sends a chunk with the identity of the live producer.
fn forge(address: SocketAddr) -> TcpStream {
    let mut stream = greeted(address, SENDER);
    let chunk = ChunkSource::new(LIVE_PRODUCER).next(0, 100);
    let mut payload = chunk.meta.identity.to_bytes().to_vec();
    payload.extend_from_slice(&chunk.bytes);
    let frame = [header(0, &payload).bytes(), payload].concat();
    stream.write_all(&frame).expect("a receiver reads");
    stream
}

/// A sender's hello, without its checksum.
#[derive(Debug, Clone, Copy)]
pub struct Hello {
    /// The lowest and the highest version.
    pub versions: (u16, u16),
    /// 1 for a sender, 2 for a receiver.
    pub role: u8,
    /// 1 for a token.
    pub features: u16,
    /// The largest chunk.
    pub max_chunk_bytes: u32,
    /// The window in chunks; the window in bytes is 60,000.
    pub window_chunks: u32,
    /// The announced interval of heartbeats, in milliseconds.
    pub heartbeat_ms: u32,
}

/// A correct hello.
pub const SENDER: Hello = Hello {
    versions: (1, 1),
    role: 1,
    features: 0,
    max_chunk_bytes: 20_000,
    window_chunks: 8,
    heartbeat_ms: 5000,
};

impl Hello {
    /// Returns the hello's bytes, with the checksum.
    pub fn bytes(self) -> Vec<u8> {
        let mut bytes = b"BALERTCP".to_vec();
        bytes.extend(self.versions.0.to_le_bytes());
        bytes.extend(self.versions.1.to_le_bytes());
        bytes.extend([self.role, 0]);
        bytes.extend(self.features.to_le_bytes());
        bytes.extend(self.max_chunk_bytes.to_le_bytes());
        bytes.extend(self.window_chunks.to_le_bytes());
        bytes.extend(60_000_u64.to_le_bytes());
        bytes.extend(self.heartbeat_ms.to_le_bytes());
        sealed(bytes)
    }
}

/// A frame's header, without its checksum.
#[derive(Debug, Clone, Copy)]
pub struct Header {
    /// The kind of the frame: 1 for a chunk.
    pub kind: u8,
    /// 1 if an identity follows.
    pub flags: u8,
    /// The kind of the container; 0 for frames without a chunk.
    pub container: u8,
    /// The number of bytes after the header.
    pub length: u32,
    /// The checksum of the bytes that it covers.
    pub checksum: u32,
    /// The number of the chunk, or of acknowledged chunks.
    pub sequence: u64,
}

impl Header {
    /// Returns a frame that consists of its header.
    pub const fn short(kind: u8, sequence: u64) -> Self {
        Self {
            kind,
            flags: 0,
            container: 0,
            length: 0,
            checksum: 0,
            sequence,
        }
    }

    /// Returns the header's bytes, with the checksum.
    pub fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![self.kind, self.flags, self.container, 0];
        bytes.extend(self.length.to_le_bytes());
        bytes.extend(u32::from(self.kind == 1).to_le_bytes());
        bytes.extend(self.checksum.to_le_bytes());
        bytes.extend(self.sequence.to_le_bytes());
        sealed(bytes)
    }
}

/// Returns header and payload of a chunk in Kieker's container, with its identity.
pub fn chunk(sequence: u64, container: &[u8]) -> (Header, Vec<u8>) {
    let mut payload = vec![7; 32];
    payload.extend(sequence.to_le_bytes());
    payload.extend(container);
    (header(sequence, &payload), payload)
}

/// Returns the header of a chunk in Kieker's container. The payload is its identity and container.
pub fn header(sequence: u64, payload: &[u8]) -> Header {
    Header {
        kind: 1,
        flags: 1,
        container: 1,
        length: u32::try_from(payload.len()).expect("chunks are small"),
        checksum: crc32c::crc32c(payload),
        sequence,
    }
}

/// Returns the bytes, followed by their checksum.
pub fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = crc32c::crc32c(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

/// Opens a connection whose reads end after a while.
pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a receiver listens");
    let patience = Some(Duration::from_secs(20));
    stream
        .set_read_timeout(patience)
        .expect("a socket has timeouts");
    stream
}

/// Sends this hello, and returns the answer.
pub fn greet(stream: &mut TcpStream, hello: Hello) -> [u8; 40] {
    stream.write_all(&hello.bytes()).expect("a receiver reads");
    let mut answer = [0; 40];
    stream.read_exact(&mut answer).expect("a receiver answers");
    answer
}
