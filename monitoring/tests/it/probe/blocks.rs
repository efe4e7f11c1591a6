//! Probes on impl blocks, traits and modules.

use std::collections::BTreeMap;

use baler_monitoring::probe;

use super::asynchronous::{block_on, yield_times};
use super::recording::{Recording, reconstruct};

struct Till<T, const N: usize>(Vec<T>, [u8; N]);

#[probe]
impl<T, const N: usize> Till<T, { N }>
where
    T: Copy + Into<u64>,
    [u8; N]: Default,
{
    const LIMIT: usize = 3;

    const fn limit(&self) -> usize {
        Self::LIMIT
    }

    pub(crate) fn add(&mut self, value: T) -> Result<(), usize> {
        if self.0.len() >= self.limit() {
            return Err(self.count());
        }
        self.0.push(value);
        Ok(())
    }

    #[probe(skip)]
    fn count(&self) -> usize {
        self.0.len()
    }

    #[probe(name = "shop.Till.total()")]
    fn sum(&self) -> u64 {
        self.0.iter().map(|value| (*value).into()).sum()
    }

    async fn later(&self) -> u64 {
        yield_times(2).await;
        self.sum()
    }
}

#[test]
fn each_function_of_an_impl_block_is_measured() {
    let recording = Recording::start();
    let mut till = Till::<u32, 2>(Vec::new(), [0; 2]);
    assert_eq!(till.add(1), Ok(()));
    assert_eq!(block_on(till.later()), 1);
    assert_eq!(
        (till.add(1), till.add(1), till.add(1)),
        (Ok(()), Ok(()), Err(3))
    );
    let records = recording.finish();
    assert_eq!(
        reconstruct(&records),
        ["add", "add", "add", "add", "later(total)"]
    );
    let signatures: Vec<_> = records
        .iter()
        .map(|record| record.operation_signature.as_str())
        .collect();
    assert_eq!(signatures[0], "Result it.probe.blocks.Till.add(T)");
    assert_eq!(signatures[1], "shop.Till.total()");
    assert_eq!(signatures[2], "u64 it.probe.blocks.Till.later()");
}

#[probe]
trait Priced: Sized {
    const TAX: u32 = 2;

    fn net(&self) -> u32;

    fn gross(&self) -> u32 {
        self.net() + Self::TAX
    }

    #[probe(skip)]
    fn free(&self) -> bool {
        self.net() == 0
    }
}

struct Book;

#[probe]
impl Priced for Book {
    fn net(&self) -> u32 {
        10
    }
}

#[test]
fn provided_and_implemented_methods_of_a_trait_are_measured() {
    let recording = Recording::start();
    assert_eq!(Book.gross(), 12);
    assert!(!Book.free());
    let records = recording.finish();
    assert_eq!(reconstruct(&records), ["gross(net)", "net"]);
    let signatures: BTreeMap<_, _> = records
        .iter()
        .map(|record| (record.operation(), record.operation_signature.as_str()))
        .collect();
    assert_eq!(signatures["gross"], "u32 it.probe.blocks.Priced.gross()");
    assert_eq!(signatures["net"], "u32 it.probe.blocks.Book.net()");
}

#[probe]
mod warehouse {
    //! The name `probe` is not in scope here.

    use std::fmt::Debug;

    #[derive(Debug)]
    pub(crate) struct Shelf {
        pub(crate) items: u32,
    }

    impl Shelf {
        pub(crate) fn take(&mut self) -> Option<u32> {
            self.items = self.items.checked_sub(1)?;
            Some(self.items)
        }
    }

    macro_rules! written {
        () => {
            pub(crate) fn written() {}
        };
    }

    written!();

    pub(crate) mod gate {
        pub(crate) fn open() {
            shut();
        }

        #[probe(skip)]
        fn shut() {}
    }

    #[probe(skip)]
    pub(crate) mod quiet {
        pub(crate) fn whisper() {}
    }

    #[probe(name = "warehouse.show()")]
    pub(crate) fn show(what: &impl Debug) -> String {
        format!("{what:?}")
    }

    #[cfg(test)]
    pub(crate) mod tests {
        pub(crate) fn helper() {}
    }
}

#[test]
fn functions_of_a_module_are_measured_with_their_nested_blocks() {
    let recording = Recording::start();
    let mut shelf = warehouse::Shelf { items: 1 };
    assert_eq!((shelf.take(), shelf.take()), (Some(0), None));
    warehouse::written();
    warehouse::gate::open();
    warehouse::quiet::whisper();
    warehouse::tests::helper();
    assert_eq!(warehouse::show(&shelf.items), "0");
    let records = recording.finish();
    assert_eq!(reconstruct(&records), ["open", "show", "take", "take"]);
    assert_eq!(
        records[0].operation_signature,
        "Option it.probe.blocks.warehouse.Shelf.take()"
    );
}
