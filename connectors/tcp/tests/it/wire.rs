//! Hellos and frames written by hand after PROTOCOL.md, right and wrong.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A sender's hello, before its checksum.
#[derive(Clone, Copy)]
pub(crate) struct Hello {
    pub(crate) versions: (u16, u16),
    pub(crate) role: u8,
    pub(crate) features: u16,
    pub(crate) max_chunk_bytes: u32,
    pub(crate) window_chunks: u32,
    pub(crate) heartbeat_ms: u32,
}

/// A hello that is as it should be.
pub(crate) const SENDER: Hello = Hello {
    versions: (1, 1),
    role: 1,
    features: 0,
    max_chunk_bytes: 20_000,
    window_chunks: 8,
    heartbeat_ms: 5000,
};

impl Hello {
    pub(crate) fn bytes(self) -> Vec<u8> {
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
#[derive(Clone, Copy)]
pub(crate) struct Header {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) container: u8,
    pub(crate) length: u32,
    pub(crate) checksum: u32,
    pub(crate) sequence: u64,
}

impl Header {
    /// A frame that is all header.
    pub(crate) const fn short(kind: u8, sequence: u64) -> Self {
        Self {
            kind,
            flags: 0,
            container: 0,
            length: 0,
            checksum: 0,
            sequence,
        }
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![self.kind, self.flags, self.container, 0];
        bytes.extend(self.length.to_le_bytes());
        bytes.extend(u32::from(self.kind == 1).to_le_bytes());
        bytes.extend(self.checksum.to_le_bytes());
        bytes.extend(self.sequence.to_le_bytes());
        sealed(bytes)
    }
}

/// A chunk of Kieker's with its identity, complete.
pub(crate) fn chunk(sequence: u64, container: &[u8]) -> (Header, Vec<u8>) {
    let mut payload = vec![7; 32];
    payload.extend(sequence.to_le_bytes());
    payload.extend(container);
    let header = Header {
        kind: 1,
        flags: 1,
        container: 1,
        length: u32::try_from(payload.len()).unwrap(),
        checksum: crc32c::crc32c(&payload),
        sequence,
    };
    (header, payload)
}

/// The bytes with their checksum behind them.
pub(crate) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = crc32c::crc32c(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

/// A connection whose reads end after a while.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    let patience = Some(Duration::from_secs(20));
    stream.set_read_timeout(patience).unwrap();
    stream
}

/// Says hello by hand and hears the answer.
pub(crate) fn greet(stream: &mut TcpStream, hello: Hello) -> [u8; 40] {
    stream.write_all(&hello.bytes()).unwrap();
    let mut answer = [0; 40];
    stream.read_exact(&mut answer).unwrap();
    answer
}
