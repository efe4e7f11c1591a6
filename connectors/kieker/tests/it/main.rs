//! The reader before recorded senders, several of them, and hostile ones; writers before an
//! independent decoder.

#![cfg(test)]

mod adaptive;
#[expect(dead_code, reason = "shared with the tests of common")]
#[path = "../../../../common/tests/it/arbitrary.rs"]
mod arbitrary;
mod chunks;
mod container;
mod hostile;
mod independent;
mod log_damage;
mod log_follow;
mod log_writer;
mod logs;
mod messages;
mod pattern_bodies;
mod patterns;
mod program;
mod schema;
mod stream_bodies;
mod streams;
mod string_lengths;
mod support;
mod tcp_writer;
mod time_units;
mod types;
