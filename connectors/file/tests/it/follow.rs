//! Proves that a follower reads every line once, whatever is done to the files meanwhile.

mod cases;
mod histories;
mod streams;
mod support;
