//! The index of a batch's strings, and the keys by which strings are found.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher, RandomState};

use super::error::PushError;
use crate::number::to_u64;
use crate::record::intern::{INTERNED, Interned};
use crate::record::strings::StringTable;
use crate::record::words::{Words, text_place, text_words};

/// Finds the ids of strings while a batch is filled.
///
/// The index keeps keys, and the table keeps the texts. So a known string is neither copied nor
/// checked for valid UTF-8, and a chunk frees nothing. (A `HashMap` of boxed strings took a sixth
/// of the collector's time.)
#[derive(Debug)]
pub(super) struct StringIndex {
    /// The string with a key. If two strings have the same key, which is rare, it is the later one.
    /// The earlier one gets another id when it comes again.
    ids: HashMap<u64, u32, BuildHasherDefault<KeyHasher>>,
    keys: StringKeys,
    /// By number of the interned string: the last batch with it, and its id there.
    interned: Vec<(u32, u32)>,
    /// By number of the interned string: its text and hash, valid for all batches.
    texts: Vec<Option<Known>>,
    /// Counts the batches, so that nothing must be cleared between them; never 0.
    batch: u32,
    /// A buffer to build a text.
    text: Vec<u8>,
}

/// The data of an interned string.
#[derive(Debug, Clone, Copy)]
struct Known {
    text: &'static str,
    hash: u64,
}

/// Keys are hashes already.
#[derive(Debug, Clone, Copy, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }

    fn write(&mut self, _: &[u8]) {
        // Keys are written by `write_u64`.
    }
}

/// The least number of strings for which memory is kept.
const LEAST_ROOM: usize = 256;

impl Default for StringIndex {
    fn default() -> Self {
        Self {
            ids: HashMap::default(),
            keys: StringKeys::default(),
            interned: Vec::new(),
            texts: Vec::new(),
            batch: 1,
            text: Vec::new(),
        }
    }
}

impl StringIndex {
    /// Returns the id of a string, and adds it to the table if it is new.
    ///
    /// # Errors
    ///
    /// See [`PushError`].
    #[inline(never)]
    pub(super) fn id(&mut self, bytes: &[u8], table: &mut StringTable) -> Result<u32, PushError> {
        let hash = self.keys.of(bytes);
        match self.find(bytes, hash, table) {
            Some(id) => Ok(id),
            None => {
                let string = std::str::from_utf8(bytes).map_err(|_| PushError::Malformed)?;
                self.add(string, (hash, hash), table)
            }
        }
    }

    /// Returns the id of an interned string. If it was seen in this batch, no hash is needed.
    ///
    /// # Errors
    ///
    /// See [`PushError`]; a number without a string is malformed.
    #[inline]
    pub(super) fn interned_id(
        &mut self,
        handle: Interned,
        table: &mut StringTable,
    ) -> Result<u32, PushError> {
        match self.known_interned(handle.number()) {
            Some(id) => Ok(id),
            None => self.new_interned_id(handle, table),
        }
    }

    /// Returns the id of the interned string with this number, if it was seen in this batch.
    #[inline(always)]
    fn known_interned(&self, number: u32) -> Option<u32> {
        let number = usize::try_from(number).ok()?;
        let (batch, id) = self.interned.get(number)?;
        (*batch == self.batch).then_some(*id)
    }

    /// Adds an interned string to this batch for the first time.
    #[cold]
    fn new_interned_id(
        &mut self,
        handle: Interned,
        table: &mut StringTable,
    ) -> Result<u32, PushError> {
        let number = usize::try_from(handle.number()).map_err(|_| PushError::Malformed)?;
        let known = match self.texts.get(number).copied().flatten() {
            Some(known) => known,
            None => {
                let text = handle.text().ok_or(PushError::Malformed)?;
                let hash = self.keys.of(text.as_bytes());
                Known { text, hash }
            }
        };
        let Known { text, hash } = known;
        let id = match self.find(text.as_bytes(), hash, table) {
            Some(id) => id,
            None => self.add(text, (hash, StringKeys::of_interned(handle)), table)?,
        };
        if self.interned.len() <= number {
            // The string exists, so this is at most the number of all interned strings.
            self.interned.resize(number + 1, (0, 0));
            self.texts.resize(number + 1, None);
        }
        if let Some((interned, place)) = self
            .interned
            .get_mut(number)
            .zip(self.texts.get_mut(number))
        {
            *interned = (self.batch, id);
            *place = Some(known);
        }
        Ok(id)
    }

    /// Returns the id of the string whose tag is in a field of words.
    ///
    /// # Errors
    ///
    /// See [`PushError`].
    #[inline(always)]
    pub(super) fn id_of_tag(
        &mut self,
        words: &(impl Words + ?Sized),
        tag: u32,
        table: &mut StringTable,
    ) -> Result<u32, PushError> {
        if tag & INTERNED != 0 {
            return self.interned_id(Interned::from_number(tag & !INTERNED), table);
        }
        let (at, length) = text_place(tag);
        let length = usize::try_from(length).map_err(|_| PushError::Malformed)?;
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        for at in at..at + text_words(length) {
            let word = words.word(at).ok_or(PushError::Malformed)?;
            text.extend_from_slice(&word.to_le_bytes());
        }
        text.truncate(length);
        let id = self.id(&text, table);
        self.text = text;
        id
    }

    /// Returns the id of a string with this hash.
    #[inline]
    fn find(&self, bytes: &[u8], hash: u64, table: &StringTable) -> Option<u32> {
        let id = *self.ids.get(&hash)?;
        (table.bytes(id) == Some(bytes)).then_some(id)
    }

    fn add(
        &mut self,
        string: &str,
        (hash, key): (u64, u64),
        table: &mut StringTable,
    ) -> Result<u32, PushError> {
        let id = table.push_with_key(string, key).ok_or(PushError::Full)?;
        self.ids.insert(hash, id);
        Ok(id)
    }

    /// Forgets every string, and keeps memory in proportion to their number.
    pub(super) fn clear(&mut self) {
        let room = self.ids.capacity();
        let few = self.ids.len() < room / 16;
        self.ids.clear();
        if few && room > LEAST_ROOM {
            // One odd chunk with very many strings must not slow down all later chunks.
            self.ids.shrink_to(room / 2);
        }
        self.batch = self.batch.wrapping_add(1);
        if self.batch == 0 {
            // After four billion batches the numbers start over.
            self.interned.fill((0, 0));
            self.batch = 1;
        }
    }
}

/// Makes keys of strings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StringKeys {
    /// Secret from anybody who chooses strings. Otherwise strings with equal keys could be made.
    secret: [u64; 2],
}

impl Default for StringKeys {
    fn default() -> Self {
        // The standard library's keys are random for each process.
        let state = RandomState::new();
        Self {
            secret: [0_u8, 1].map(|number| state.hash_one(number)),
        }
    }
}

/// This bit marks a key that is not a hash but the number of an interned string.
const NAMED: u64 = 1 << 63;

impl StringKeys {
    /// Returns the key of a string.
    pub(crate) fn of(&self, bytes: &[u8]) -> u64 {
        hash(bytes, self.secret) & !NAMED
    }

    /// Returns the key of an interned string.
    fn of_interned(string: Interned) -> u64 {
        NAMED | u64::from(string.number())
    }

    /// Returns the number of the interned string with this key, if there is one. Equal numbers mean
    /// equal texts for as long as the program runs.
    pub(crate) fn interned(key: u64) -> Option<u32> {
        if key & NAMED == 0 {
            return None;
        }
        u32::try_from(key & !NAMED).ok()
    }
}

/// Multiplies to 128 bits and folds the halves, 16 bytes at a time, as wyhash does (Wang Yi).
#[expect(clippy::cast_possible_truncation, reason = "the halves of a product")]
fn hash(bytes: &[u8], [first, second]: [u64; 2]) -> u64 {
    let fold = |a: u64, b: u64| {
        let product = u128::from(a ^ first) * u128::from(b ^ second);
        product as u64 ^ (product >> 64) as u64
    };
    // Include the length, so that zeros at the end count.
    let mut hash = to_u64(bytes.len());
    let pairs = bytes.chunks_exact(16);
    let rest = pairs.remainder();
    for pair in pairs.filter_map(|pair| pair.first_chunk()) {
        let [a, b] = words(pair);
        hash = fold(hash ^ a, b);
    }
    let [a, b] = match bytes.last_chunk::<16>() {
        _ if rest.is_empty() => return hash,
        // Read some of the bytes twice, instead of one by one.
        Some(last) => words(last),
        None => {
            let mut last = [0; 16];
            last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            words(&last)
        }
    };
    fold(hash ^ a, b)
}

fn words(bytes: &[u8; 16]) -> [u64; 2] {
    let [a, b, c, d, e, f, g, h, rest @ ..] = *bytes;
    [[a, b, c, d, e, f, g, h], rest].map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests;
