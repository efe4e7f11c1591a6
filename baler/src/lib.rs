#![doc = include_str!("../README.md")]

mod config;
#[cfg(feature = "consumer")]
mod consumer;
mod controller;
mod error;
mod irl;
mod media;

#[cfg(feature = "consumer")]
pub use baler_analysis as analysis;
#[cfg(feature = "arrow")]
pub use baler_analysis::arrow;
pub use baler_common::transport;
#[cfg(feature = "spool")]
pub use baler_connector_file::spool;
/// Records each call of a function: [`baler_monitoring::probe`], for programs that depend only on
/// this crate.
#[cfg(feature = "macros")]
pub use baler_macros::facade_probe as probe;
pub use baler_monitoring as monitoring;
pub use baler_monitoring::{TraceContext, emit, enter, shutdown_installed};
#[cfg(feature = "tracing")]
pub use baler_tracing as tracing;
#[cfg(feature = "consumer")]
pub use config::ConsumerConfig;
pub use config::ControllerConfig;
#[cfg(feature = "stream")]
pub use consumer::BatchStream;
#[cfg(feature = "consumer")]
pub use consumer::{Batch, Consumer, RecordIdentity, StopHandle, consume, source};
pub use controller::Controller;
pub use error::Error;
pub use media::{decoder, media};
pub use record::{Record, Records};

/// Encoding and decoding of chunks ([`baler_common::container`]), also in Kieker's container.
pub mod container {
    pub use baler_common::container::*;
    pub use baler_connector_kieker::container::{
        ChunkString, KiekerChunk, KiekerDeserializer, KiekerSerializer, KiekerStream,
        KiekerStreamEncoder, StreamChunk, StreamStep, TimeUnit,
    };
}

/// Records: types, schemas, batches ([`baler_common::record`]).
pub mod record {
    pub use baler_common::record::*;
    /// Kieker's record types ([`baler_connector_kieker::types`]).
    pub use baler_connector_kieker::types as kieker;
    // They replace the macros of the same names above, whose code names `baler_common`.
    pub use baler_macros::{FacadeRecord as Record, FacadeRecords as Records};
}

/// The programs in README.md compile, and run where they need no broker.
#[cfg(all(doctest, feature = "macros"))]
#[doc = include_str!("../../README.md")]
struct Readme;
