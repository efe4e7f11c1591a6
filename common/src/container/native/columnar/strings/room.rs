//! Strings as they are written: room is made for a whole string, which then needs no look at how
//! much of it is left.

use super::beginnings::{Found, Shared};
use super::hex;
use super::known::SPELLED_BLOCK;
use super::words::{HEX, WORDS};
use crate::container::num::{to_u64, to_usize};
use crate::container::varint;

/// The head of a string of digits, in a byte.
const HEX_BYTE: u8 = HEX.to_le_bytes()[0];

/// Text that is being written, with room behind it.
#[derive(Debug, Default)]
pub(super) struct Room {
    bytes: Vec<u8>,
    /// How many bytes are the text.
    pub(super) filled: usize,
}

impl Room {
    /// What was written.
    pub(super) fn written(&self) -> &[u8] {
        self.bytes.get(..self.filled).unwrap_or_default()
    }

    /// Makes room for so many bytes.
    pub(super) fn make(&mut self, bytes: usize) {
        let end = self.filled.saturating_add(bytes);
        if self.bytes.len() < end {
            self.bytes.resize(end.next_power_of_two(), 0);
        }
    }

    /// What there is behind the text.
    pub(super) fn left(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.filled..).unwrap_or_default()
    }

    /// Appends what stands before the words of a string, which may begin with so many bytes of the
    /// one so many before; there must be room.
    #[inline]
    pub(super) fn head(&mut self, shared: Option<Shared>, words: usize) {
        let (bytes, distance) = shared.map_or((0, 0), |it| (it.bytes, it.distance));
        let head = WORDS + u64::from(bytes);
        let words = to_u64(words);
        let short = |number: u64| u8::try_from(number).ok().filter(|byte| *byte < 0x80);
        match (shared, short(head), short(distance.into()), short(words)) {
            // Nearly always.
            (Some(_), Some(head), Some(distance), Some(words)) => {
                if let Some(to) = self.left().first_chunk_mut() {
                    *to = [head, distance, words];
                    self.filled += 3;
                }
            }
            _ => {
                self.varint(head);
                if shared.is_some() {
                    self.varint(distance.into());
                }
                self.varint(words);
            }
        }
    }

    /// Appends a string that begins like an earlier one and goes on with short words; `false`, and
    /// nothing, if there is no room, or numbers are not small as they nearly always are.
    #[inline]
    pub(super) fn run(&mut self, found: Found, spelled: &[u8]) -> bool {
        let Found {
            distance, behind, ..
        } = found;
        if (distance | u32::from(behind.head)) >= 0x80 {
            return false;
        }
        let from = spelled.get(to_usize(behind.spelled.into())..);
        let from = from.and_then(<[u8]>::first_chunk::<SPELLED_BLOCK>);
        let to = self.left().first_chunk_mut::<{ 3 + SPELLED_BLOCK }>();
        let (Some(from), Some([first, second, third, to @ ..])) = (from, to) else {
            return false;
        };
        let [low, ..] = distance.to_le_bytes();
        (*first, *second, *third) = (behind.head, low, behind.words);
        *to = *from;
        self.filled += 3 + usize::from(behind.spelled_bytes);
        true
    }

    /// Appends a number, for which there must be room.
    pub(super) fn varint(&mut self, mut number: u64) {
        let Some(to) = self.left().first_chunk_mut::<{ varint::MAX_BYTES }>() else {
            return;
        };
        let mut bytes = 0;
        for to in to {
            let [low, ..] = number.to_le_bytes();
            bytes += 1;
            number >>= 7;
            if number == 0 {
                *to = low;
                break;
            }
            *to = low | 0x80;
        }
        self.filled += bytes;
    }

    /// Appends bytes and, before them, how many they are; there must be room.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.varint(to_u64(bytes.len()));
        if let Some(to) = self.left().get_mut(..bytes.len()) {
            to.copy_from_slice(bytes);
            self.filled += bytes.len();
        }
    }

    /// Appends a string of hexadecimal digits, for which there must be room; `false`, and nothing,
    /// if it is none.
    pub(super) fn hex(&mut self, string: &[u8]) -> bool {
        let start = self.filled;
        match (
            u8::try_from(string.len() / 2),
            self.left().first_chunk_mut(),
        ) {
            // Nearly always.
            (Ok(bytes @ 0..0x80), Some(to)) => {
                *to = [HEX_BYTE, bytes];
                self.filled += 2;
            }
            _ => {
                self.varint(HEX);
                self.varint(to_u64(string.len() / 2));
            }
        }
        if hex::pack(string, self.left()) {
            self.filled += string.len() / 2;
            true
        } else {
            self.filled = start;
            false
        }
    }
}
