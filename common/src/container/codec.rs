//! Compresses and decompresses one block: the only module that knows the compression libraries.

use std::fmt;

use super::compression::{BlockCompression, Compression};
#[cfg(feature = "zstd")]
use super::dictionary::{Dictionaries, Dictionary};
use super::error::{DecodeErrorKind, EncodeError};
use super::format::{FIRST_ADDED_NUMBER, check_number};
use crate::number::to_u64;

/// The numbers of the compressions in the container; FORMAT.md, "Blocks".
pub(super) const CODE_NONE: u8 = 0;
pub(super) const CODE_LZ4: u8 = 1;
pub(super) const CODE_ZSTD: u8 = 2;
pub(super) const CODE_ZSTD_DICTIONARY: u8 = 3;

/// Returns the compression with this number, if it is one of Baler's own.
fn from_code(code: u8) -> Option<Compression> {
    match code {
        CODE_NONE => Some(Compression::None),
        CODE_LZ4 => Some(Compression::Lz4),
        CODE_ZSTD | CODE_ZSTD_DICTIONARY => Some(Compression::Zstd { level: 0 }),
        _ => None,
    }
}

/// Compresses blocks with one compression; keeps its tables and its buffer from block to block.
#[derive(Default)]
pub(super) struct Compressor {
    method: Method,
    out: Vec<u8>,
}

#[derive(Default)]
enum Method {
    #[default]
    None,
    Added(&'static dyn BlockCompression),
    #[cfg(feature = "lz4")]
    Lz4(lz4_flex::block::CompressTable),
    #[cfg(feature = "zstd")]
    Zstd(zstd::bulk::Compressor<'static>, i32),
    #[cfg(feature = "zstd")]
    ZstdDictionary(zstd::bulk::Compressor<'static>, i32),
}

impl Compressor {
    /// Creates a compressor of this kind.
    ///
    /// # Errors
    ///
    /// [`EncodeError::CompressionMissing`] when it was left out of this build,
    /// [`EncodeError::Compression`] when the library fails.
    pub(super) fn new(compression: Compression) -> Result<Self, EncodeError> {
        let method = match compression {
            Compression::None => Method::None,
            #[cfg(feature = "lz4")]
            Compression::Lz4 => Method::Lz4(lz4_flex::block::CompressTable::default()),
            #[cfg(feature = "zstd")]
            Compression::Zstd { level } => {
                let compressor = zstd::bulk::Compressor::new(level)
                    .map_err(|error| failed(compression, &error))?;
                Method::Zstd(compressor, level)
            }
            missing => {
                return Err(EncodeError::CompressionMissing {
                    compression: missing.name(),
                });
            }
        };
        Ok(Self {
            method,
            out: Vec::new(),
        })
    }

    /// Creates a compressor from another crate.
    ///
    /// # Errors
    ///
    /// [`EncodeError::ReservedNumber`] when its number is one of Baler's own.
    pub(super) fn added(compression: &'static dyn BlockCompression) -> Result<Self, EncodeError> {
        let (name, number) = (compression.name(), compression.number());
        check_number("compression", name, number)?;
        Ok(Self {
            method: Method::Added(compression),
            out: Vec::new(),
        })
    }

    /// Creates a compressor by zstd at this level, with a dictionary.
    ///
    /// # Errors
    ///
    /// [`EncodeError::Compression`] when the library fails.
    #[cfg(feature = "zstd")]
    pub(super) fn with_dictionary(
        level: i32,
        dictionary: &Dictionary,
    ) -> Result<Self, EncodeError> {
        use zstd::zstd_safe::CParameter;
        let bytes = dictionary.as_bytes();
        let compressor = zstd::bulk::Compressor::with_dictionary(level, bytes);
        let compressor = compressor.and_then(|mut compressor| {
            // Another dictionary with the same id would yield wrong bytes without any error.
            compressor.set_parameter(CParameter::ChecksumFlag(true))?;
            // The block already contains the length.
            compressor.set_parameter(CParameter::ContentSizeFlag(false))?;
            Ok(compressor)
        });
        let compressor = compressor.map_err(|error| failed(Compression::Zstd { level }, &error))?;
        Ok(Self {
            method: Method::ZstdDictionary(compressor, level),
            out: Vec::new(),
        })
    }

    /// Returns its compression.
    fn compression(&self) -> Compression {
        match self.method {
            Method::None => Compression::None,
            Method::Added(added) => Compression::Added { name: added.name() },
            #[cfg(feature = "lz4")]
            Method::Lz4(_) => Compression::Lz4,
            #[cfg(feature = "zstd")]
            Method::Zstd(_, level) | Method::ZstdDictionary(_, level) => {
                Compression::Zstd { level }
            }
        }
    }

    /// Whether it does not compress.
    pub(super) fn is_none(&self) -> bool {
        matches!(self.method, Method::None)
    }

    /// Compresses a block; returns `None` when the block should be stored as it is.
    ///
    /// # Errors
    ///
    /// [`EncodeError::Compression`] when the library fails.
    pub(super) fn compress(&mut self, raw: &[u8]) -> Result<Option<(u8, &[u8])>, EncodeError> {
        if raw.is_empty() {
            return Ok(None);
        }
        #[cfg(any(feature = "lz4", feature = "zstd"))]
        let compression = self.compression();
        #[cfg(feature = "zstd")]
        let code = match self.method {
            Method::ZstdDictionary(..) => CODE_ZSTD_DICTIONARY,
            _ => CODE_ZSTD,
        };
        match &mut self.method {
            Method::None => Ok(None),
            Method::Added(added) => {
                self.out.clear();
                added.compress(raw, &mut self.out)?;
                Ok(Some((added.number(), &self.out)))
            }
            #[cfg(feature = "lz4")]
            Method::Lz4(table) => {
                let room = lz4_flex::block::get_maximum_output_size(raw.len());
                if self.out.len() < room {
                    self.out.resize(room, 0);
                }
                let bytes = lz4_flex::block::compress_into_with_table(raw, &mut self.out, table)
                    .map_err(|error| failed(compression, &error))?;
                Ok(self.out.get(..bytes).map(|stored| (CODE_LZ4, stored)))
            }
            #[cfg(feature = "zstd")]
            Method::Zstd(compressor, _) | Method::ZstdDictionary(compressor, _) => {
                self.out.clear();
                self.out.reserve(zstd::zstd_safe::compress_bound(raw.len()));
                let bytes = compressor
                    .compress_to_buffer(raw, &mut self.out)
                    .map_err(|error| failed(compression, &error))?;
                Ok(self.out.get(..bytes).map(|stored| (code, stored)))
            }
        }
    }
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Compressor({})", self.compression())
    }
}

#[cfg(any(feature = "lz4", feature = "zstd"))]
fn failed(compression: Compression, error: &dyn fmt::Display) -> EncodeError {
    EncodeError::Compression {
        compression: compression.name(),
        message: error.to_string().into(),
    }
}

/// Decompresses blocks of any kind; keeps its context from block to block.
#[derive(Default)]
pub(super) struct Decompressor {
    /// The compressions that were added.
    added: Vec<&'static dyn BlockCompression>,
    #[cfg(feature = "zstd")]
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    #[cfg(feature = "zstd")]
    dictionaries: Dictionaries,
    /// By the id of the loaded dictionary.
    #[cfg(feature = "zstd")]
    loaded: std::collections::BTreeMap<u32, zstd::bulk::Decompressor<'static>>,
}

/// A copy has the same compressions and dictionaries, and contexts of its own.
impl Clone for Decompressor {
    fn clone(&self) -> Self {
        Self {
            added: self.added.clone(),
            #[cfg(feature = "zstd")]
            zstd: None,
            #[cfg(feature = "zstd")]
            dictionaries: self.dictionaries.clone(),
            #[cfg(feature = "zstd")]
            loaded: std::collections::BTreeMap::new(),
        }
    }
}

impl Decompressor {
    /// Adds a compression from another crate.
    pub(super) fn add(&mut self, compression: &'static dyn BlockCompression) {
        self.added.push(compression);
    }

    /// Returns the compression with this number. A chunk does not contain the level of zstd: it is
    /// 0.
    pub(super) fn compression(&self, code: u8) -> Option<Compression> {
        let added = self.added(code);
        let added = added.map(|it| Compression::Added { name: it.name() });
        added.or_else(|| from_code(code))
    }

    fn added(&self, code: u8) -> Option<&'static dyn BlockCompression> {
        let mut added = self.added.iter().copied();
        added.find(|it| it.number() == code && code >= FIRST_ADDED_NUMBER)
    }

    /// Sets the dictionaries that chunks may name.
    #[cfg(feature = "zstd")]
    pub(super) fn set_dictionaries(&mut self, dictionaries: Dictionaries) {
        self.dictionaries = dictionaries;
        self.loaded.clear();
    }

    /// Returns a decompressor with the dictionary that the frame names.
    #[cfg(feature = "zstd")]
    fn loaded(
        &mut self,
        frame: &[u8],
    ) -> Result<&mut zstd::bulk::Decompressor<'static>, DecodeErrorKind> {
        use std::collections::btree_map::Entry;
        let id = zstd::zstd_safe::get_dict_id_from_frame(frame);
        let id = id
            .ok_or_else(|| broken(&"the frame names no dictionary"))?
            .get();
        match self.loaded.entry(id) {
            Entry::Occupied(loaded) => Ok(loaded.into_mut()),
            Entry::Vacant(free) => {
                let missing = || DecodeErrorKind::DictionaryMissing { id };
                let dictionary = self.dictionaries.get(id).ok_or_else(missing)?;
                let loaded = zstd::bulk::Decompressor::with_dictionary(dictionary.as_bytes());
                Ok(free.insert(loaded.map_err(|error| broken(&error))?))
            }
        }
    }

    /// Decompresses a block into exactly the memory it declared.
    ///
    /// # Errors
    ///
    /// When the data is broken, yields more or fewer bytes than `raw` has, or needs a larger window
    /// than 2 to the power of `window_log`.
    #[cfg_attr(
        not(feature = "zstd"),
        expect(
            clippy::needless_pass_by_ref_mut,
            unused_variables,
            reason = "zstd keeps a context, and only zstd has a window"
        )
    )]
    pub(super) fn decompress(
        &mut self,
        code: u8,
        stored: &[u8],
        raw: &mut [u8],
        window_log: u32,
    ) -> Result<(), DecodeErrorKind> {
        let found = match code {
            CODE_NONE if stored.len() == raw.len() => {
                raw.copy_from_slice(stored);
                stored.len()
            }
            CODE_NONE => stored.len(),
            #[cfg(feature = "lz4")]
            CODE_LZ4 => {
                lz4_flex::block::decompress_into(stored, raw).map_err(|error| broken(&error))?
            }
            #[cfg(feature = "zstd")]
            CODE_ZSTD => {
                check_frame(stored, window_log)?;
                self.zstd
                    .get_or_insert_default()
                    .decompress_to_buffer(stored, raw)
                    .map_err(|error| broken(&error))?
            }
            #[cfg(feature = "zstd")]
            CODE_ZSTD_DICTIONARY => {
                check_frame(stored, window_log)?;
                self.loaded(stored)?
                    .decompress_to_buffer(stored, raw)
                    .map_err(|error| broken(&error))?
            }
            _ => match (self.added(code), from_code(code)) {
                (Some(added), _) => added.decompress(stored, raw)?,
                (None, Some(missing)) => {
                    let compression = missing.name();
                    return Err(DecodeErrorKind::CompressionMissing { compression });
                }
                (None, None) => {
                    let (what, number) = ("compression", code.into());
                    return Err(DecodeErrorKind::Unknown { what, number });
                }
            },
        };
        if found == raw.len() {
            Ok(())
        } else {
            Err(DecodeErrorKind::Length {
                declared: to_u64(raw.len()),
                found: to_u64(found),
            })
        }
    }
}

impl fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Decompressor")
    }
}

#[cfg(any(feature = "lz4", feature = "zstd"))]
fn broken(error: &dyn fmt::Display) -> DecodeErrorKind {
    DecodeErrorKind::Compression {
        message: error.to_string().into(),
    }
}

/// Checks two rules that libzstd does not check when it decompresses in one step: there is one
/// frame with nothing after it, and its window is within the limit (RFC 8878, section 3.1.1.1).
#[cfg(feature = "zstd")]
fn check_frame(stored: &[u8], window_log: u32) -> Result<(), DecodeErrorKind> {
    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    const SINGLE_SEGMENT: u8 = 0x20;
    let mut head = super::cursor::Cursor::new(stored);
    let ends = |error: super::DecodeError| error.kind;
    if head.array("the frame's magic").map_err(ends)? != MAGIC {
        return Err(broken(&"not a zstd frame"));
    }
    let descriptor = head.u8("the frame's descriptor").map_err(ends)?;
    if descriptor & SINGLE_SEGMENT == 0 {
        let window = head.u8("the frame's window").map_err(ends)?;
        let base = 1_u64 << (10 + u32::from(window >> 3));
        let window_bytes = base + base / 8 * u64::from(window & 7);
        let limit = 1_u64.checked_shl(window_log);
        if let Some(limit) = limit.filter(|limit| window_bytes > *limit) {
            return Err(DecodeErrorKind::Limit {
                limit,
                found: window_bytes,
            });
        }
    }
    let frame = zstd::zstd_safe::find_frame_compressed_size(stored)
        .map_err(|code| broken(&zstd::zstd_safe::get_error_name(code)))?;
    match stored.len().checked_sub(frame) {
        Some(0) => Ok(()),
        Some(bytes) => Err(DecodeErrorKind::Trailing { bytes }),
        None => Err(broken(&"the frame ends behind the block")),
    }
}

#[cfg(all(test, feature = "lz4", feature = "zstd"))]
mod tests {
    use super::*;

    #[expect(clippy::unwrap_used, reason = "a helper of tests")]
    fn stored(compression: Compression, raw: &[u8]) -> (u8, Vec<u8>) {
        let mut compressor = Compressor::new(compression).unwrap();
        let (code, bytes) = compressor.compress(raw).unwrap().unwrap();
        (code, bytes.to_vec())
    }

    #[test]
    fn more_or_less_than_declared_is_refused() {
        let raw = vec![7; 1_000];
        for compression in [Compression::Lz4, Compression::Zstd { level: 3 }] {
            let (code, bytes) = stored(compression, &raw);
            for declared in [1, 999, 1_001, 4_000] {
                let mut out = vec![0; declared];
                let result = Decompressor::default().decompress(code, &bytes, &mut out, 27);
                assert!(result.is_err(), "{compression} {declared}");
            }
            let mut out = vec![0; 1_000];
            Decompressor::default()
                .decompress(code, &bytes, &mut out, 27)
                .unwrap();
            assert_eq!(out, raw);
        }
    }

    #[test]
    fn two_frames_are_not_one() {
        let (code, mut bytes) = stored(Compression::Zstd { level: 1 }, &[7; 500]);
        let once = bytes.clone();
        bytes.extend_from_slice(&once);
        let error = Decompressor::default()
            .decompress(code, &bytes, &mut [0; 1_000], 27)
            .unwrap_err();
        assert_eq!(error, DecodeErrorKind::Trailing { bytes: once.len() });
    }

    #[test]
    fn a_window_above_the_limit_is_refused() {
        // Magic, a descriptor without a single segment, a window of 2^(10 + 18) bytes, then an
        // empty last block.
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 18 << 3, 0x01, 0x00, 0x00];
        let error = Decompressor::default()
            .decompress(CODE_ZSTD, &frame, &mut [0; 1], 27)
            .unwrap_err();
        assert_eq!(
            error,
            DecodeErrorKind::Limit {
                limit: 1 << 27,
                found: 1 << 28
            }
        );
    }
}
