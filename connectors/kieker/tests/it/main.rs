//! The reader before recorded senders, several of them, and hostile ones; writers before an
//! independent decoder.

#![cfg(test)]

mod adaptive;
mod chunks;
mod hostile;
mod independent;
mod log_damage;
mod log_follow;
mod log_writer;
mod logs;
mod program;
mod schema;
mod streams;
mod support;
mod tcp_writer;
