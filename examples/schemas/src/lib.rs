//! The record types of `shop.irl`, which `build.rs` makes.

baler::include_irl!();
