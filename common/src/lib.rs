#![doc = include_str!("../README.md")]

// The derive macro names this crate by its full path, even in this crate.
extern crate self as baler_common;

pub mod calendar;
pub mod container;
pub mod mutex;
pub mod number;
pub mod random;
pub mod record;
pub mod transport;
