//! Hostile senders for a receiver of the `tcp` connector: hellos and frames written by hand after its
//! PROTOCOL.md, and a table of attacks.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use crate::chunks::ChunkSource;

/// An attack on a receiver, and what must come of it.
///
/// Whatever the attack is, a sender beside it that keeps to the protocol goes on.
#[derive(Debug, Clone, Copy)]
pub struct Attack {
    /// What the peers do.
    pub name: &'static str,
    /// What the receiver demands of its senders.
    pub guard: Guard,
    /// Does it; yields the connections, which are to be kept as long as the attack lasts.
    pub run: fn(SocketAddr) -> Vec<TcpStream>,
    /// What the receiver says of each connection that it refuses; nothing if it bears them for now.
    pub refusal: Option<&'static str>,
}

/// What a receiver demands of its senders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Nothing.
    None,
    /// TLS.
    Tls,
    /// A token.
    Token,
}

/// The producer whose live sender is beside the attacks: they claim its identity.
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
                // The challenge is not worth reading.
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

/// A connection on which these bytes were sent.
fn sending(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = connect(address);
    stream.write_all(bytes).expect("a receiver listens");
    stream
}

/// A connection on which both sides have said hello.
fn greeted(address: SocketAddr, hello: Hello) -> TcpStream {
    let mut stream = connect(address);
    greet(&mut stream, hello);
    stream
}

/// Connections that each announce a chunk of 16 MiB, send `sent` bytes of it, and then nothing,
/// with the longest heartbeat that there is.
pub fn stall_in_large_chunks(address: SocketAddr, senders: usize, sent: usize) -> Vec<TcpStream> {
    many(senders, || {
        let mut stream = greeted(address, PATIENT);
        announce(&mut stream);
        // As far as the receiver takes it.
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

/// A connection that sends a frame byte by byte, from a thread that ends with it.
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

/// A connection that sends a chunk of the live producer, as one that follows its own.
fn forge(address: SocketAddr) -> TcpStream {
    let mut stream = greeted(address, SENDER);
    let chunk = ChunkSource::new(LIVE_PRODUCER).next(0, 100);
    let mut payload = chunk.meta.identity.to_bytes().to_vec();
    payload.extend_from_slice(&chunk.bytes);
    let frame = [header(0, &payload).bytes(), payload].concat();
    stream.write_all(&frame).expect("a receiver reads");
    stream
}

/// A sender's hello, before its checksum.
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
    /// The window; that in bytes is 60,000.
    pub window_chunks: u32,
    /// How often the side is heard of.
    pub heartbeat_ms: u32,
}

/// A hello that is as it should be.
pub const SENDER: Hello = Hello {
    versions: (1, 1),
    role: 1,
    features: 0,
    max_chunk_bytes: 20_000,
    window_chunks: 8,
    heartbeat_ms: 5000,
};

impl Hello {
    /// Its bytes, with the checksum.
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

/// A frame's header, before its checksum.
#[derive(Debug, Clone, Copy)]
pub struct Header {
    /// What the frame is: 1 for a chunk.
    pub kind: u8,
    /// 1 if an identity follows.
    pub flags: u8,
    /// Which container; 0 for bytes that are no chunk.
    pub container: u8,
    /// How many bytes follow.
    pub length: u32,
    /// The checksum of those that it covers.
    pub checksum: u32,
    /// The number of the chunk, or of acknowledged ones.
    pub sequence: u64,
}

impl Header {
    /// A frame that is all header.
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

    /// Its bytes, with the checksum.
    pub fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![self.kind, self.flags, self.container, 0];
        bytes.extend(self.length.to_le_bytes());
        bytes.extend(u32::from(self.kind == 1).to_le_bytes());
        bytes.extend(self.checksum.to_le_bytes());
        bytes.extend(self.sequence.to_le_bytes());
        sealed(bytes)
    }
}

/// A chunk of Kieker's with its identity, complete.
pub fn chunk(sequence: u64, container: &[u8]) -> (Header, Vec<u8>) {
    let mut payload = vec![7; 32];
    payload.extend(sequence.to_le_bytes());
    payload.extend(container);
    (header(sequence, &payload), payload)
}

/// The header of a chunk of Kieker's whose identity and container are these bytes.
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

/// The bytes with their checksum behind them.
pub fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = crc32c::crc32c(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

/// A connection whose reads end after a while.
pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a receiver listens");
    let patience = Some(Duration::from_secs(20));
    stream
        .set_read_timeout(patience)
        .expect("a socket has timeouts");
    stream
}

/// Says hello by hand and hears the answer.
pub fn greet(stream: &mut TcpStream, hello: Hello) -> [u8; 40] {
    stream.write_all(&hello.bytes()).expect("a receiver reads");
    let mut answer = [0; 40];
    stream.read_exact(&mut answer).expect("a receiver answers");
    answer
}
