//! Which strings a batch has already.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::builder::PushError;
use super::string_keys::StringKeys;
use super::strings::StringTable;
use crate::record::intern::Interned;
use crate::record::row::INTERNED;
use crate::record::words::{Words, text_place, text_words};

/// Finds the ids of strings while a batch is filled.
///
/// It keeps keys, and the table keeps the texts: a string of a row is neither copied, nor looked at
/// for valid UTF-8 if it is there, and a chunk frees nothing. (A `HashMap` of boxed strings took a
/// sixth of the collector's time.)
#[derive(Debug)]
pub(super) struct StringIndex {
    /// The string with a key. Of two strings with one key, which are rare, it has the later one;
    /// the earlier one then gets another id when it comes again.
    ids: HashMap<u64, u32, BuildHasherDefault<KeyHasher>>,
    keys: StringKeys,
    /// By number of the interned string: the batch that has it, and its id there.
    interned: Vec<(u32, u32)>,
    /// By number of the interned string: its text and hash, known from any batch.
    texts: Vec<Known>,
    /// Counts the batches, so that nothing has to be wiped between them; never 0.
    batch: u32,
    /// Where a text is put together.
    text: Vec<u8>,
}

/// What is known of an interned string.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    text: Option<&'static str>,
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

/// For how many strings there is always room.
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
    /// The id of a string, which is added to the table if it is new.
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

    /// Looks an interned string up without hashing it, once it was seen in this batch.
    ///
    /// # Errors
    ///
    /// See [`PushError`]; a number that no string has is malformed.
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

    /// The id of the interned string with this number, if it was seen in this batch.
    #[inline(always)]
    fn known_interned(&self, number: u32) -> Option<u32> {
        let number = usize::try_from(number).ok()?;
        let (batch, id) = self.interned.get(number)?;
        (*batch == self.batch).then_some(*id)
    }

    /// The first time in a batch.
    #[cold]
    fn new_interned_id(
        &mut self,
        handle: Interned,
        table: &mut StringTable,
    ) -> Result<u32, PushError> {
        let number = usize::try_from(handle.number()).map_err(|_| PushError::Malformed)?;
        let known = self.texts.get(number).copied().unwrap_or_default();
        let (text, hash) = match known.text {
            Some(text) => (text, known.hash),
            None => {
                let text = handle.text().ok_or(PushError::Malformed)?;
                (text, self.keys.of(text.as_bytes()))
            }
        };
        let id = match self.find(text.as_bytes(), hash, table) {
            Some(id) => id,
            None => self.add(text, (hash, StringKeys::of_interned(handle)), table)?,
        };
        if self.interned.len() <= number {
            // The string is there, so that this is no more than all that are.
            self.interned.resize(number + 1, (0, 0));
            self.texts.resize(number + 1, Known::default());
        }
        if let Some((interned, known)) = self
            .interned
            .get_mut(number)
            .zip(self.texts.get_mut(number))
        {
            *interned = (self.batch, id);
            let text = Some(text);
            *known = Known { text, hash };
        }
        Ok(id)
    }

    /// The id of the string whose tag a field of words holds.
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
        for at in at..at.saturating_add(text_words(length)) {
            let word = words.word(at).ok_or(PushError::Malformed)?;
            text.extend_from_slice(&word.to_le_bytes());
        }
        text.truncate(length);
        let id = self.id(&text, table);
        self.text = text;
        id
    }

    /// The id of a string with this hash.
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

    /// Forgets every string, keeping memory in proportion to what there was.
    pub(super) fn clear(&mut self) {
        let room = self.ids.capacity();
        let few = self.ids.len() < room / 16;
        self.ids.clear();
        if few && room > LEAST_ROOM {
            // One odd chunk with very many strings must not slow down all that follow.
            self.ids.shrink_to(room / 2);
        }
        self.batch = self.batch.wrapping_add(1);
        if self.batch == 0 {
            // After four billion batches the numbers begin anew.
            self.interned.fill((0, 0));
            self.batch = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_have_one_id_however_many_there_are() {
        let (mut index, mut table) = (StringIndex::default(), StringTable::new());
        for round in 0..3 {
            for number in 0..5_000_u32 {
                let string = format!("string {number}");
                let id = index.id(string.as_bytes(), &mut table).unwrap();
                assert_eq!(id, number, "round {round}");
            }
        }
        assert_eq!(table.len(), 5_000);
        assert_eq!(index.ids.len(), 5_000);
    }

    #[test]
    fn interned_and_inline_strings_share_their_ids() {
        let (mut index, mut table) = (StringIndex::default(), StringTable::new());
        let handle = Interned::new("an operation");
        let inline = index.id(b"an operation", &mut table).unwrap();
        for _ in 0..2 {
            assert_eq!(index.interned_id(handle, &mut table), Ok(inline));
        }
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn interned_string_has_another_id_in_another_batch() {
        let (mut index, mut table) = (StringIndex::default(), StringTable::new());
        let [a, b] = ["one operation", "another operation"].map(Interned::new);
        for order in [[a, b], [b, a], [b, a]] {
            for (id, handle) in (0..).zip(order) {
                assert_eq!(index.interned_id(handle, &mut table), Ok(id));
                assert_eq!(table.get(id), Some(handle.as_str()));
            }
            index.clear();
            table.clear();
        }
        // Numbers that begin anew find nothing of four billion batches ago.
        index.batch = u32::MAX;
        index.clear();
        assert_eq!(index.interned_id(b, &mut table), Ok(0));
    }

    #[test]
    fn number_that_no_string_has_is_refused_and_takes_no_memory() {
        let (mut index, mut table) = (StringIndex::default(), StringTable::new());
        let unknown = Interned::from_number(u32::MAX >> 1);
        let refused = index.interned_id(unknown, &mut table);
        assert_eq!(refused, Err(PushError::Malformed));
        assert!(table.is_empty() && index.interned.is_empty());
    }

    #[test]
    fn a_cleared_index_knows_nothing_and_shrinks_after_an_odd_chunk() {
        let (mut index, mut table) = (StringIndex::default(), StringTable::new());
        for number in 0..10_000_u32 {
            index
                .id(&number.to_le_bytes().map(|byte| byte % 128), &mut table)
                .unwrap();
        }
        let most = index.ids.capacity();
        for _ in 0..20 {
            index.clear();
            table.clear();
            assert_eq!(index.id(b"one", &mut table), Ok(0));
        }
        assert!(most > 5_000 && index.ids.capacity() <= LEAST_ROOM);
    }

    #[test]
    fn what_is_not_utf8_is_refused_and_leaves_nothing_behind() {
        let (mut index, mut table) = (StringIndex::default(), StringTable::new());
        for _ in 0..2 {
            assert_eq!(
                index.id(&[0xff, 0xfe], &mut table),
                Err(PushError::Malformed)
            );
        }
        assert_eq!((table.len(), index.ids.len()), (0, 0));
    }
}
