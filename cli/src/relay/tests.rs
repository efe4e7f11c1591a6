//! The relay between two media in memory, whatever breaks.

mod ending;
mod faults;
mod passing;
mod support;
mod unfit;
