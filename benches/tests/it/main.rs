//! The measurements themselves work: everything is run once, with few records, and is right.

#![cfg(test)]

mod codec;
mod overhead;
