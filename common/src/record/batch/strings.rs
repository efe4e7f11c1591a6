//! The strings of one batch, each kept once.

use std::hash::{BuildHasher as _, RandomState};

use super::builder::PushError;
use crate::record::intern::Interned;

/// The strings of one batch; a string's id is its position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StringTable {
    text: String,
    ends: Vec<u32>,
}

impl StringTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty table with room for so many strings of so many bytes together.
    pub fn with_capacity(strings: usize, text_bytes: usize) -> Self {
        Self {
            text: String::with_capacity(text_bytes),
            ends: Vec::with_capacity(strings),
        }
    }

    /// How many strings it has.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it has no string.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many bytes of UTF-8 its strings have together.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// The string with this id.
    pub fn get(&self, id: u32) -> Option<&str> {
        let index = usize::try_from(id).ok()?;
        let to = usize::try_from(*self.ends.get(index)?).ok()?;
        let from = match index.checked_sub(1) {
            Some(before) => usize::try_from(*self.ends.get(before)?).ok()?,
            None => 0,
        };
        self.text.get(from..to)
    }

    /// The strings in order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).filter_map(|id| self.get(u32::try_from(id).ok()?))
    }

    /// All strings, end to end.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Where each string ends in the text; it starts where the one before ends.
    pub(crate) fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// Appends a string without looking whether it is there; `None` beyond 4 GiB of text.
    pub fn push(&mut self, string: &str) -> Option<u32> {
        let id = u32::try_from(self.ends.len()).ok()?;
        let end = u32::try_from(self.text.len().checked_add(string.len())?).ok()?;
        self.text.push_str(string);
        self.ends.push(end);
        Some(id)
    }

    /// Removes every string, keeping the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }
}

/// Finds the ids of strings while a batch is filled.
///
/// Open addressing over the text that the table keeps anyway: a string of a row is neither copied,
/// nor looked at for valid UTF-8 if it is there, and a chunk frees nothing. (A `HashMap` of boxed
/// strings took a sixth of the collector's time.)
#[derive(Debug)]
pub(super) struct StringIndex {
    /// A power of two of them, or none; at most half are in use.
    slots: Vec<Slot>,
    used: usize,
    /// What no one who chooses strings knows: else some could be made that all have one hash.
    secret: [u64; 2],
    /// By number of the interned string: its id + 1 in this batch, or 0.
    interned: Vec<u32>,
}

/// A place for a string.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// The string's id + 1, or 0 if the place is free.
    next_id: u32,
    /// The upper half of its hash, so that seldom another string is compared.
    tag: u32,
}

/// How many slots there are as soon as there is a string.
const FIRST_SLOTS: usize = 256;

impl Default for StringIndex {
    fn default() -> Self {
        // The standard library's keys are random for each process.
        let state = RandomState::new();
        Self {
            slots: Vec::new(),
            used: 0,
            secret: [0_u8, 1].map(|number| state.hash_one(number)),
            interned: Vec::new(),
        }
    }
}

impl StringIndex {
    /// The id of a string, which is added to the table if it is new.
    ///
    /// # Errors
    ///
    /// See [`PushError`].
    pub(super) fn id(&mut self, bytes: &[u8], table: &mut StringTable) -> Result<u32, PushError> {
        if self.used >= self.slots.len() / 2 {
            self.grow(table);
        }
        let hash = hash(bytes, self.secret);
        let tag = upper_half(hash);
        let mask = self.slots.len().wrapping_sub(1);
        let mut place = lower_bits(hash, mask);
        // Ends: half of the slots are free.
        while let Some(slot) = self.slots.get(place) {
            let Some(id) = slot.next_id.checked_sub(1) else {
                break;
            };
            if slot.tag == tag && table.get(id).is_some_and(|known| known.as_bytes() == bytes) {
                return Ok(id);
            }
            place = place.wrapping_add(1) & mask;
        }
        let string = std::str::from_utf8(bytes).map_err(|_| PushError::Malformed)?;
        let id = table.push(string).ok_or(PushError::Full)?;
        if let Some(slot) = self.slots.get_mut(place) {
            let next_id = id.checked_add(1).ok_or(PushError::Full)?;
            *slot = Slot { next_id, tag };
            self.used = self.used.saturating_add(1);
        }
        Ok(id)
    }

    /// Looks an interned string up without hashing it, once it was seen in this batch.
    pub(super) fn interned_id(
        &mut self,
        handle: Interned,
        table: &mut StringTable,
    ) -> Result<u32, PushError> {
        let number = usize::try_from(handle.number()).map_err(|_| PushError::Malformed)?;
        if let Some(known) = self
            .interned
            .get(number)
            .and_then(|known| known.checked_sub(1))
        {
            return Ok(known);
        }
        let id = self.id(handle.as_str().as_bytes(), table)?;
        if self.interned.len() <= number {
            self.interned.resize(number + 1, 0);
        }
        if let Some(slot) = self.interned.get_mut(number) {
            *slot = id.checked_add(1).ok_or(PushError::Full)?;
        }
        Ok(id)
    }

    /// Forgets every string, keeping memory in proportion to what there was.
    pub(super) fn clear(&mut self) {
        let few = self.used < self.slots.len() / 16;
        if few && self.slots.len() > FIRST_SLOTS {
            // One odd chunk with very many strings must not slow down all that follow.
            self.slots.truncate(self.slots.len() / 2);
        }
        self.slots.fill(Slot::default());
        self.used = 0;
        self.interned.clear();
    }

    /// Doubles the slots and finds each string its new place.
    fn grow(&mut self, table: &StringTable) {
        let count = self.slots.len().saturating_mul(2).max(FIRST_SLOTS);
        let mask = count.wrapping_sub(1);
        let old = std::mem::replace(&mut self.slots, vec![Slot::default(); count]);
        for slot in old.into_iter().filter(|slot| slot.next_id > 0) {
            let Some(string) = table.get(slot.next_id.wrapping_sub(1)) else {
                continue;
            };
            let mut place = lower_bits(hash(string.as_bytes(), self.secret), mask);
            while let Some(at) = self.slots.get_mut(place) {
                if at.next_id == 0 {
                    *at = slot;
                    break;
                }
                place = place.wrapping_add(1) & mask;
            }
        }
    }
}

/// Multiplies to 128 bits and folds the halves, eight bytes at a time, as wyhash does (Wang Yi).
fn hash(bytes: &[u8], [first, second]: [u64; 2]) -> u64 {
    let fold = |hash: u64, word: u64| {
        let product = u128::from(hash ^ first).wrapping_mul(u128::from(word ^ second));
        let [low, high] = [product, product >> 64].map(|half| half & u128::from(u64::MAX));
        u64::try_from(low ^ high).unwrap_or(0)
    };
    let (words, rest) = bytes.as_chunks::<8>();
    // With its length, so that zeros at the end count.
    let mut hash = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    for word in words {
        hash = fold(hash, u64::from_le_bytes(*word));
    }
    let rest = rest.iter().rev();
    fold(
        hash,
        rest.fold(0, |word, byte| (word << 8) | u64::from(*byte)),
    )
}

fn upper_half(hash: u64) -> u32 {
    u32::try_from(hash >> 32).unwrap_or(0)
}

fn lower_bits(hash: u64, mask: usize) -> usize {
    // The mask is below 2^33: there are no more strings.
    usize::try_from(hash).unwrap_or(usize::MAX) & mask
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
        assert!(index.used * 2 <= index.slots.len());
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
    fn a_cleared_index_knows_nothing_and_shrinks_after_an_odd_chunk() {
        let (mut index, mut table) = (StringIndex::default(), StringTable::new());
        for number in 0..10_000_u32 {
            index
                .id(&number.to_le_bytes().map(|byte| byte % 128), &mut table)
                .unwrap();
        }
        let most = index.slots.len();
        for _ in 0..20 {
            index.clear();
            table.clear();
            assert_eq!(index.id(b"one", &mut table), Ok(0));
        }
        assert!(most > 10_000 && index.slots.len() == FIRST_SLOTS);
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
        assert_eq!((table.len(), index.used), (0, 0));
    }

    #[test]
    fn strings_that_differ_in_length_or_one_byte_differ_in_their_hash() {
        let secret = StringIndex::default().secret;
        let strings: [&[u8]; 6] = [b"", &[0], &[0, 0], b"12345678", b"12345678\0", b"12345679"];
        let hashes: std::collections::HashSet<_> =
            strings.iter().map(|string| hash(string, secret)).collect();
        assert_eq!(hashes.len(), strings.len());
    }
}
