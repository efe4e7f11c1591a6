//! Memory of batches that were given back, for the batches that are decoded next.

use crate::record::{Column, RecordBatch};

/// How many columns of each width are kept; most batches have fewer.
const MAX_COLUMNS: usize = 32;

/// The largest column or text that is kept, in bytes.
const MAX_BYTES: usize = 128 << 10;

/// Memory for columns and strings. Its contents have no meaning.
#[derive(Debug, Default)]
pub(in crate::container::native) struct Spare {
    wide: Vec<Vec<u64>>,
    narrow: Vec<Vec<u32>>,
    text: Vec<u8>,
}

impl Spare {
    /// Keeps the memory of a batch.
    pub(in crate::container::native) fn add(&mut self, batch: RecordBatch) {
        let RecordBatch {
            strings,
            tables,
            order,
        } = batch;
        let (text, ends) = strings.into_parts();
        if text.capacity() <= MAX_BYTES {
            self.text = text.into_bytes();
        }
        self.add_narrow(ends);
        self.add_narrow(order);
        for table in tables {
            self.add_wide(unsigned(table.timestamps));
            for column in table.columns {
                match column {
                    Column::Signed(values) => self.add_wide(unsigned(values)),
                    Column::Unsigned(values) | Column::F64(values) => self.add_wide(values),
                    Column::String(values) | Column::Enum(values) | Column::F32(values) => {
                        self.add_narrow(values);
                    }
                    _ => {}
                }
            }
        }
    }

    /// `count` lanes of any value.
    pub(in crate::container::native) fn wide(&mut self, count: usize) -> Vec<u64> {
        take(&mut self.wide, count)
    }

    /// `count` lanes of any value.
    pub(in crate::container::native) fn narrow(&mut self, count: usize) -> Vec<u32> {
        take(&mut self.narrow, count)
    }

    /// An empty text, perhaps with room.
    pub(in crate::container::native) fn text(&mut self) -> Vec<u8> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        text
    }

    pub(in crate::container::native) fn add_wide(&mut self, lanes: Vec<u64>) {
        add(&mut self.wide, lanes);
    }

    pub(in crate::container::native) fn add_narrow(&mut self, lanes: Vec<u32>) {
        add(&mut self.narrow, lanes);
    }
}

fn add<T>(kept: &mut Vec<Vec<T>>, lanes: Vec<T>) {
    let bytes = lanes.capacity().saturating_mul(size_of::<T>());
    if bytes > 0 && bytes <= MAX_BYTES && kept.len() < MAX_COLUMNS {
        kept.push(lanes);
    }
}

fn take<T: Copy + Default>(kept: &mut Vec<Vec<T>>, count: usize) -> Vec<T> {
    // Memory of the same length needs no filling.
    let same = kept.iter().rposition(|lanes| lanes.len() == count);
    let large = || kept.iter().rposition(|lanes| lanes.capacity() >= count);
    match same.or_else(large) {
        Some(position) if count > 0 => {
            let mut lanes = kept.swap_remove(position);
            lanes.resize(count, T::default());
            lanes
        }
        _ => vec![T::default(); count],
    }
}

/// The numbers as lanes, in the same memory.
pub(in crate::container::native) fn unsigned(numbers: Vec<i64>) -> Vec<u64> {
    numbers.into_iter().map(|number| number as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_large_enough_is_taken_again() {
        let mut spare = Spare::default();
        let lanes = vec![7; 100];
        let memory = lanes.as_ptr();
        spare.add_wide(lanes);
        spare.add_wide(vec![7; 50]);
        assert_eq!(spare.wide(101), [0; 101]);
        let taken = spare.wide(99);
        assert_eq!((taken.as_ptr(), taken.len()), (memory, 99));
        assert_eq!(spare.wide(99), [0; 99]);
    }

    #[test]
    fn no_more_is_kept_than_may_be() {
        let mut spare = Spare::default();
        spare.add_narrow(vec![0; MAX_BYTES / size_of::<u32>() + 1]);
        assert!(spare.narrow.is_empty());
        for _ in 0..2 * MAX_COLUMNS {
            spare.add_narrow(vec![0; 10]);
        }
        assert_eq!(spare.narrow.len(), MAX_COLUMNS);
    }
}
