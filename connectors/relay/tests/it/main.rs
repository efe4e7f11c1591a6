//! The relay between two media in memory, whatever breaks.

#![cfg(test)]

mod ending;
mod faults;
mod passing;
mod support;
mod unfit;
