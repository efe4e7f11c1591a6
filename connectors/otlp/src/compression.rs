//! Compression of bodies.

use std::io::{self, Read, Write as _};

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::error::BadRequest;
use crate::limits::Share;

/// How much to decompress before the limits are checked again.
const STEP_BYTES: usize = 64 << 10;

/// The largest window of zstd, as a power of two: 8 MiB, the most that RFC 8878 recommends to accept.
const MAX_WINDOW_LOG: u32 = 23;

/// The compression of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// gzip.
    Gzip,
    /// None.
    None,
    /// zstd.
    Zstd,
}

impl Compression {
    /// Its name in headers.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::None => "identity",
            Self::Zstd => "zstd",
        }
    }

    /// Its name in URIs.
    pub(crate) const fn setting(self) -> &'static str {
        match self {
            Self::None => "none",
            _ => self.name(),
        }
    }

    pub(crate) fn from_name(name: &str) -> Result<Self, BadRequest> {
        match name {
            "" | "identity" => Ok(Self::None),
            "gzip" => Ok(Self::Gzip),
            "zstd" => Ok(Self::Zstd),
            _ => Err(BadRequest::Compression),
        }
    }

    /// Compresses a body.
    pub(crate) fn compress(self, body: Vec<u8>) -> io::Result<Vec<u8>> {
        match self {
            Self::None => Ok(body),
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(&body)?;
                encoder.finish()
            }
            Self::Zstd => zstd::bulk::compress(&body, zstd::DEFAULT_COMPRESSION_LEVEL),
        }
    }

    /// Decompresses a body of at most `limit` bytes, whose memory `share` counts.
    ///
    /// # Errors
    ///
    /// It is damaged, or there is not enough memory. Then at most one further step was decompressed.
    pub(crate) fn decompress(
        self,
        body: Bytes,
        limit: usize,
        share: &mut Share,
    ) -> Result<Bytes, BadRequest> {
        let damaged = |_| BadRequest::Compressed;
        match self {
            Self::None => Ok(body),
            Self::Gzip => read_all(MultiGzDecoder::new(&*body), limit, share),
            Self::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::new(&*body).map_err(damaged)?;
                decoder.window_log_max(MAX_WINDOW_LOG).map_err(damaged)?;
                read_all(decoder, limit, share)
            }
        }
    }
}

fn read_all(mut read: impl Read, limit: usize, share: &mut Share) -> Result<Bytes, BadRequest> {
    let mut body = Vec::new();
    loop {
        if !share.grow(STEP_BYTES) {
            return Err(BadRequest::Overloaded);
        }
        let mut step = read.by_ref().take(STEP_BYTES as u64);
        match step.read_to_end(&mut body) {
            Ok(0) => return Ok(body.into()),
            Ok(_) if body.len() > limit => return Err(BadRequest::Size),
            Ok(_) => {}
            Err(_) => return Err(BadRequest::Compressed),
        }
    }
}
