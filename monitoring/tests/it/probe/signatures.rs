//! The signatures that probes give to operations.

use std::collections::HashMap;
use std::fmt::Debug;

use baler_monitoring::probe;

use super::recording::Recording;

mod shop {
    use super::*;

    pub(super) struct Shop<T>(pub(super) T);

    pub(super) trait Sell {
        fn sell(&self, count: u32) -> bool;

        #[probe]
        fn discount(&self) -> f64 {
            0.0
        }
    }

    impl<T: Debug> Shop<T> {
        #[probe]
        pub fn open(first: T) -> Self {
            Self(first)
        }

        #[probe]
        pub async fn restock(
            &self,
            by: &mut HashMap<String, Vec<u8>>,
        ) -> Result<(), Box<dyn Debug>> {
            by.clear();
            Ok(())
        }

        #[probe(name = "public void legacy.Till.close()")]
        pub fn close(self) {}
    }

    impl<T> Sell for Shop<T> {
        #[probe]
        fn sell(&self, _count: u32) -> bool {
            true
        }
    }
}

mod elsewhere {
    use super::*;

    impl shop::Shop<char> {
        #[probe]
        pub(super) fn r#move(
            &self,
            _rows: [(u8, u8); 2],
            _text: &'static str,
            _do: fn(u8),
        ) -> (u8, u8) {
            (1, 2)
        }
    }

    impl shop::Sell for [u8] {
        #[probe]
        fn sell(&self, _count: u32) -> bool {
            false
        }
    }
}

#[probe]
fn outer() {
    #[probe]
    fn inner(_reader: impl std::io::Read, _writer: &dyn std::fmt::Write) {}
    inner(std::io::empty(), &String::new());
}

#[test]
fn signatures_have_the_form_of_kieker() {
    use shop::Sell;

    let recording = Recording::start();
    let shop = shop::Shop::open('x');
    shop.sell(1);
    shop.discount();
    shop.r#move([(0, 0); 2], "", drop::<u8>);
    super::asynchronous::block_on(shop.restock(&mut HashMap::new())).unwrap();
    shop.close();
    [0_u8][..].sell(1);
    outer();
    let signatures: Vec<_> = recording
        .finish()
        .into_iter()
        .map(|record| record.call.operation_signature)
        .collect();
    assert_eq!(
        signatures,
        [
            "public Self it.probe.signatures.shop.Shop.open(T)",
            "bool it.probe.signatures.shop.Shop.sell(u32)",
            "f64 it.probe.signatures.shop.Sell.discount()",
            "tuple it.probe.signatures.shop.Shop.move(tuple[], str, fn)",
            "public Result it.probe.signatures.shop.Shop.restock(HashMap)",
            "public void legacy.Till.close()",
            "bool it.probe.signatures.shop.Sell.sell(u32)",
            "void it.probe.signatures.outer.inner(std.io.Read, std.fmt.Write)",
            "void it.probe.signatures.outer()",
        ]
    );
    for signature in signatures {
        split_as_kieker_does(&signature);
    }
}

/// `ClassOperationSignaturePair.splitOperationSignatureStr`, as far as it can fail.
fn split_as_kieker_does(signature: &str) {
    let (head, arguments) = signature.split_once('(').unwrap();
    assert!(arguments.ends_with(')') && !arguments.contains('('));
    let (_modifiers_and_return, full_name) = head.rsplit_once(' ').unwrap();
    let (class, operation) = full_name.rsplit_once('.').unwrap();
    assert!(!class.is_empty() && !operation.is_empty());
}

mod facade {
    pub(super) use baler_monitoring as monitoring;
}

#[probe(crate = self::facade::monitoring)]
fn through_a_facade() {}

#[test]
fn the_crate_can_be_named_by_another_path() {
    let recording = Recording::start();
    through_a_facade();
    assert_eq!(recording.finish()[0].operation(), "through_a_facade");
}
