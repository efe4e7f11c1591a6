//! The reader before recorded senders, several of them, and hostile ones.

#![cfg(test)]

mod hostile;
mod log;
mod streams;
mod support;
