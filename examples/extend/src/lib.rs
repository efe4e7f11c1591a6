//! Additions to Baler from another crate: a body format, a container and a medium.
//!
//! | addition | what | the sender names it | the consumer names it |
//! |---|---|---|---|
//! | [`JSON_LINES`] | a format of native bodies | `NativeSerializer::with_format` | `ChunkDecoder::with_format` |
//! | [`LinesSerializer`], [`LinesDeserializer`] | a container | `ControllerBuilder::serializer` | `ChunkDecoder::with_deserializer` |
//! | [`LZ4_FILE`] | a medium | `ControllerConfig::media` | `ConsumerConfig::media` |
//!
//! ```
//! use std::time::Duration;
//!
//! use baler::transport::uri::Uri;
//! use baler::{ConsumerConfig, Controller, ControllerConfig, Record};
//! use baler_extend::{LZ4_FILE, LinesDeserializer, LinesSerializer};
//!
//! #[derive(Record)]
//! struct Order { id: u64, item: String }
//!
//! let folder = tempfile::tempdir()?;
//! let uri = Uri::parse(&format!("lz4+file://{}", folder.path().display()))?;
//!
//! let mut config = ControllerConfig::new(uri.clone());
//! config.media = baler::media().with(LZ4_FILE);
//! let controller = Controller::with(config, |it| it.serializer(LinesSerializer))?;
//! controller.emit(&Order { id: 1, item: "tea".into() });
//! assert_eq!(controller.shutdown(Duration::from_secs(5)).delivered(), 2);
//!
//! let mut config = ConsumerConfig::new(uri);
//! config.media = baler::media().with(LZ4_FILE);
//! config.decoder = config.decoder.with_deserializer(LinesDeserializer);
//! let mut items = Vec::new();
//! for batch in baler::consume::<Order>(config)? {
//!     let batch = batch?;
//!     items.extend(batch.iter().map(|order| order.item.clone()));
//!     batch.ack()?;
//! }
//! assert_eq!(items, ["tea"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod container;
mod json_lines;
mod medium;

pub use container::{LinesDeserializer, LinesSerializer};
pub use json_lines::JSON_LINES;
pub use medium::LZ4_FILE;
