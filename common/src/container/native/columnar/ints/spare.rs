//! Memory of batches that nobody needs any more, for those that are decoded next.

use crate::record::{Column, RecordBatch};

/// So many columns of each kind are kept; most batches have fewer.
const MOST: usize = 64;

/// How many bytes a word of a string takes at most.
const WORD_BYTES: usize = 32;

/// Memory for columns and strings; what is in it is overwritten.
#[derive(Debug, Default)]
pub(in crate::container::native) struct Spare {
    wide: Vec<Vec<u64>>,
    narrow: Vec<Vec<u32>>,
    text: Vec<u8>,
    /// Always few; not counted.
    words: Vec<[u8; WORD_BYTES]>,
    /// How many bytes all of it has.
    bytes: usize,
}

impl Spare {
    /// Keeps what is of use of a batch, up to so many bytes with what is kept already.
    pub(in crate::container::native) fn add(&mut self, batch: RecordBatch, most_bytes: usize) {
        let RecordBatch {
            strings,
            tables,
            order,
        } = batch;
        let (text, ends) = strings.into_parts();
        if self.has_room(text.capacity(), most_bytes) {
            self.bytes -= self.text.capacity();
            self.text = text.into_bytes();
        }
        self.add_narrow(ends, most_bytes);
        self.add_narrow(order, most_bytes);
        for table in tables {
            self.add_wide(unsigned(table.timestamps), most_bytes);
            for column in table.columns {
                match column {
                    Column::Signed(values) => self.add_wide(unsigned(values), most_bytes),
                    Column::Unsigned(values) | Column::F64(values) => {
                        self.add_wide(values, most_bytes);
                    }
                    Column::String(values) | Column::Enum(values) | Column::F32(values) => {
                        self.add_narrow(values, most_bytes);
                    }
                    _ => {}
                }
            }
        }
    }

    /// So many lanes, which hold anything.
    pub(in crate::container::native) fn wide(&mut self, count: usize) -> Vec<u64> {
        take(&mut self.wide, count, &mut self.bytes)
    }

    /// So many lanes, which hold anything.
    pub(in crate::container::native) fn narrow(&mut self, count: usize) -> Vec<u32> {
        take(&mut self.narrow, count, &mut self.bytes)
    }

    /// So many words, which hold anything.
    pub(in crate::container::native) fn words(&mut self, count: usize) -> Vec<[u8; WORD_BYTES]> {
        let mut words = std::mem::take(&mut self.words);
        words.resize(count, [0; WORD_BYTES]);
        words
    }

    /// Takes back the memory of words.
    pub(in crate::container::native) fn add_words(&mut self, words: Vec<[u8; WORD_BYTES]>) {
        self.words = words;
    }

    /// So many bytes, which hold anything.
    pub(in crate::container::native) fn text(&mut self, bytes: usize) -> Vec<u8> {
        let text = std::mem::take(&mut self.text);
        self.bytes -= text.capacity();
        resized(text, bytes)
    }

    /// Keeps memory that was taken and not needed for the batch.
    pub(in crate::container::native) fn add_wide(&mut self, lanes: Vec<u64>, most_bytes: usize) {
        if self.wide.len() < MOST && self.has_room(bytes_of(&lanes), most_bytes) {
            self.wide.push(lanes);
        }
    }

    /// As [`Self::add_wide`], of the other width.
    pub(in crate::container::native) fn add_narrow(&mut self, lanes: Vec<u32>, most_bytes: usize) {
        if self.narrow.len() < MOST && self.has_room(bytes_of(&lanes), most_bytes) {
            self.narrow.push(lanes);
        }
    }

    /// Whether so many bytes more are kept, which then are counted.
    fn has_room(&mut self, bytes: usize, most_bytes: usize) -> bool {
        let all = self.bytes.saturating_add(bytes);
        let fits = bytes > 0 && all <= most_bytes;
        if fits {
            self.bytes = all;
        }
        fits
    }
}

/// The memory of one that is large enough, or some of its own.
fn take<T: Copy + Default>(kept: &mut Vec<Vec<T>>, count: usize, bytes: &mut usize) -> Vec<T> {
    // One of the same length is nearly always there. One that was shorter has to be wiped behind that.
    let fits = || {
        let fits = kept.iter().enumerate();
        let fits = fits.filter(|(_, lanes)| lanes.capacity() >= count);
        let best = fits.min_by_key(|(_, lanes)| (lanes.capacity(), lanes.len().abs_diff(count)));
        best.map(|(position, _)| position)
    };
    let alike = kept.iter().rposition(|lanes| lanes.len() == count);
    match alike.or_else(fits).filter(|_| count > 0) {
        None => vec![T::default(); count],
        Some(position) => {
            let lanes = kept.swap_remove(position);
            *bytes -= bytes_of(&lanes);
            resized(lanes, count)
        }
    }
}

/// Without copying what is in it: memory that is too small is of no use.
fn resized<T: Copy + Default>(mut lanes: Vec<T>, count: usize) -> Vec<T> {
    if lanes.capacity() < count {
        return vec![T::default(); count];
    }
    lanes.resize(count, T::default());
    lanes
}

fn bytes_of<T>(lanes: &Vec<T>) -> usize {
    lanes.capacity().saturating_mul(size_of::<T>())
}

/// The numbers as lanes, in the same memory.
pub(in crate::container::native) fn unsigned(numbers: Vec<i64>) -> Vec<u64> {
    numbers.into_iter().map(i64::cast_unsigned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_large_enough_is_taken_again() {
        let mut spare = Spare::default();
        let lanes = vec![7; 100];
        let memory = lanes.as_ptr();
        spare.add_wide(lanes, 1_000);
        spare.add_wide(vec![7; 50], 1_000);
        assert_eq!(spare.bytes, 800);
        assert_eq!(spare.wide(101), [0; 101]);
        let taken = spare.wide(99);
        assert_eq!((taken.as_ptr(), taken.len(), spare.bytes), (memory, 99, 0));
        assert_eq!(spare.wide(99), [0; 99]);
    }

    /// A short column leaves the memory of long ones to these, and what it wiped to the next short one.
    #[test]
    fn memory_of_the_same_length_is_taken_first() {
        let mut spare = Spare::default();
        for lanes in [100, 50, 100] {
            spare.add_wide(vec![7; lanes], 10_000);
        }
        let fifty = spare.wide(50);
        assert_eq!((fifty.capacity(), fifty[49]), (50, 7));
        let sixty = spare.wide(60);
        let memory = sixty.as_ptr();
        spare.add_wide(sixty, 10_000);
        let taken = spare.wide(61);
        assert_eq!(taken.as_ptr(), memory);
        assert_eq!(spare.wide(100), [7; 100]);
    }

    #[test]
    fn no_more_is_kept_than_may_be() {
        let mut spare = Spare::default();
        for _ in 0..2 * MOST {
            spare.add_narrow(vec![0; 10], 10_000);
        }
        assert_eq!((spare.narrow.len(), spare.bytes), (MOST, MOST * 40));
        let mut spare = Spare::default();
        for _ in 0..10 {
            spare.add_narrow(vec![0; 10], 100);
        }
        assert_eq!((spare.narrow.len(), spare.bytes), (2, 80));
    }
}
