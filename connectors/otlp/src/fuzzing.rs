//! What fuzz targets call.

use std::cell::RefCell;

use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};
use bytes::Bytes;

use crate::compression::Compression;
use crate::decode::{Json, Protobuf, decode};
use crate::limits::Budget;
use crate::protocol::{Signal, unframe};
use crate::sink::Sink;

thread_local! {
    static SINK: RefCell<Sink> = {
        let epoch = Epoch {
            start_unix_ns: 1,
            random: 1,
        };
        let first = ChunkIdentity::first(ProducerId::new(1), epoch, 0);
        RefCell::new(Sink::new(first, 512 << 10))
    };
}

/// Reads any bytes as a request. The first byte chooses its signal, form and compression.
pub fn request(bytes: &[u8]) {
    let Some((choice, body)) = bytes.split_first() else {
        return;
    };
    let mut body = Bytes::copy_from_slice(body);
    if choice & 0x20 != 0 {
        let Some((message, _)) = unframe(body) else {
            return;
        };
        body = message;
    }
    let compression = match choice & 0x18 {
        0x08 => Compression::Gzip,
        0x10 => Compression::Zstd,
        _ => Compression::None,
    };
    let mut memory = Budget::new(1 << 20).share();
    let Ok(body) = compression.decompress(body, 1 << 20, &mut memory) else {
        return;
    };
    let signal = match choice & 0x03 {
        0x01 => Signal::Logs,
        0x02 => Signal::Metrics,
        _ => Signal::Traces,
    };
    // As in a reader, the requests share it.
    SINK.with_borrow_mut(|sink| {
        sink.begin();
        let decoded = match choice & 0x04 {
            0 => decode::<Protobuf>(signal, &body, sink),
            _ => decode::<Json>(signal, &body, sink),
        };
        if decoded.is_ok() {
            sink.finish();
        }
    });
}
