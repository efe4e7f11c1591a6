//! The reader before recorded senders, several of them, and hostile ones; writers before an
//! independent decoder.

#![cfg(test)]

mod chunks;
mod hostile;
mod independent;
mod log;
mod log_writer;
mod schema;
mod streams;
mod support;
mod tcp_writer;
