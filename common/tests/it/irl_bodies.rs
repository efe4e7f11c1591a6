//! The body of the fuzz target `irl`; `corpus` replays its inputs on stable.

use baler_common::record::irl::{self, IrlSource};
use baler_connector_kieker::types;

/// Reads the bytes as a file of record types.
pub(crate) fn irl(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let source = IrlSource {
        name: "fuzzed",
        text: &text,
    };
    let mut catalog = types::catalog();
    let before = catalog.schemas().len();
    match irl::read(&mut catalog, &[source]) {
        Ok(()) => assert!(catalog.schemas().len() >= before),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert_eq!(catalog.schemas().len(), before);
        }
    }
}
