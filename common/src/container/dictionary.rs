//! Dictionaries of zstd that writers and readers share (RFC 8878, section 5).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

const MAGIC: [u8; 4] = [0x37, 0xa4, 0x30, 0xec];

/// The largest dictionary. Chunks do not profit from more, and a wrong file is not loaded.
const MAX_BYTES: usize = 1 << 20;

/// A dictionary of zstd, as `zstd --train` writes it.
///
/// A chunk that was compressed with one contains only its id, and cannot be decompressed without
/// it. Small chunks become smaller by it, but depend on it.
#[derive(Clone, PartialEq, Eq)]
pub struct Dictionary {
    id: u32,
    bytes: Arc<[u8]>,
}

/// The bytes are not a usable dictionary, or another one has the same id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DictionaryError {
    /// Two dictionaries of one id.
    #[error("there are two dictionaries with the id {id}")]
    Ambiguous {
        /// The id.
        id: u32,
    },
    /// The bytes do not begin as a dictionary of zstd, or have the id 0.
    #[error("this is no zstd dictionary with an id, as `zstd --train` writes it")]
    Malformed,
    /// It is larger than 1 MiB.
    #[error("the dictionary has {bytes} bytes, more than 1 MiB")]
    TooLarge {
        /// How many bytes it has.
        bytes: usize,
    },
}

impl Dictionary {
    /// Creates a dictionary from these bytes.
    ///
    /// # Errors
    ///
    /// They are not a dictionary.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Result<Self, DictionaryError> {
        let bytes = bytes.into();
        if bytes.len() > MAX_BYTES {
            let bytes = bytes.len();
            return Err(DictionaryError::TooLarge { bytes });
        }
        let id = bytes
            .strip_prefix(&MAGIC)
            .and_then(|rest| rest.first_chunk())
            .map_or(0, |id| u32::from_le_bytes(*id));
        match id {
            0 => Err(DictionaryError::Malformed),
            id => Ok(Self { id, bytes }),
        }
    }

    /// Returns the id by which chunks name it.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the dictionary as it is stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dictionary({}, {} bytes)", self.id, self.bytes.len())
    }
}

/// The dictionaries of a reader, by id.
#[derive(Debug, Clone, Default)]
pub struct Dictionaries {
    by_id: BTreeMap<u32, Dictionary>,
}

impl Dictionaries {
    /// Adds a dictionary; adding it again changes nothing.
    ///
    /// # Errors
    ///
    /// [`DictionaryError::Ambiguous`] when there is another one with its id.
    pub fn insert(&mut self, dictionary: Dictionary) -> Result<(), DictionaryError> {
        let id = dictionary.id;
        let known = self.by_id.entry(id).or_insert_with(|| dictionary.clone());
        match *known == dictionary {
            true => Ok(()),
            false => Err(DictionaryError::Ambiguous { id }),
        }
    }

    /// The dictionary with this id.
    pub fn get(&self, id: u32) -> Option<&Dictionary> {
        self.by_id.get(&id)
    }
}

#[cfg(test)]
mod tests;
