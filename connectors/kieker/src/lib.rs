#![doc = include_str!("../README.md")]
#![cfg_attr(
    feature = "media",
    allow(
        clippy::incompatible_msrv,
        reason = "the container compiles with Rust 1.85; the libraries of the media need a newer one"
    )
)]

#[cfg(feature = "media")]
pub mod adaptive;
#[cfg(feature = "media")]
mod config;
pub mod container;
#[cfg(feature = "media")]
mod headers;
#[cfg(feature = "media")]
pub mod log;
#[cfg(feature = "media")]
mod medium;
#[cfg(feature = "media")]
pub mod messages;
pub mod pattern;
#[cfg(feature = "media")]
mod reader;
#[cfg(feature = "media")]
mod schema;
pub mod types;
pub mod w3c;
#[cfg(feature = "media")]
mod writer;

#[cfg(feature = "media")]
pub use config::KiekerTcpConfig;
#[cfg(feature = "media")]
pub use log::{KiekerLogConfig, KiekerLogReader, is_log};
#[cfg(feature = "media")]
pub use medium::{LOG_MEDIUM, MEDIUM, adaptive_receiver};
#[cfg(feature = "media")]
pub use reader::{KiekerTcpReader, ReaderStats};
#[cfg(feature = "media")]
pub use schema::read_schema;
#[cfg(feature = "media")]
pub use writer::{
    KiekerLogWriter, KiekerLogWriterConfig, KiekerTcpWriter, KiekerTcpWriterConfig, LogCompression,
    LogFormat, WriterCounts,
};

/// The scheme of this medium's URIs.
pub const SCHEME: &str = "kieker+tcp";

/// The scheme of the URIs of logs.
pub const LOG_SCHEME: &str = "kieker-log";

/// Returns how long it is until a time; zero if it is past.
#[cfg(feature = "media")]
fn time_left(until: std::time::Instant) -> std::time::Duration {
    until.saturating_duration_since(std::time::Instant::now())
}
