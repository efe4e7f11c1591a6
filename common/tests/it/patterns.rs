//! Patterns from bytes, as the fuzz target makes them.

use proptest::prelude::*;

use crate::pattern_bodies::pattern;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn matching_agrees_with_a_naive_matcher(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        pattern(&bytes);
    }
}
