//! The measurements themselves work: everything runs once, with few records, and succeeds.

#![cfg(test)]

mod chunk_sizes;
mod codec;
mod detect;
mod overhead;
mod pages;
mod sampling;
mod verdicts;
