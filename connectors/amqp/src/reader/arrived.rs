//! A message, taken from the client library.

use baler_common::transport::ChunkMeta;
use bytes::Bytes;

use crate::headers;

/// A message, taken from the client library.
#[derive(Debug, Clone)]
pub(super) struct Arrived {
    /// Its number on the channel (AMQP 0.9.1, `delivery-tag`).
    pub(super) tag: u64,
    /// Its number in the stream; that on the channel if it is in none.
    pub(super) position: u64,
    pub(super) bytes: Bytes,
    pub(super) meta: Option<ChunkMeta>,
    pub(super) redelivered: bool,
    /// How often it was delivered before and not settled, where the broker counts.
    pub(super) attempts: u32,
}

impl From<lapin::message::Delivery> for Arrived {
    fn from(delivery: lapin::message::Delivery) -> Self {
        let tag = delivery.delivery_tag;
        Self {
            tag,
            position: headers::stream_offset(&delivery.properties).unwrap_or(tag),
            meta: headers::meta(&delivery.properties),
            redelivered: delivery.redelivered,
            attempts: headers::delivery_count(&delivery.properties).unwrap_or(0),
            bytes: Bytes::from(delivery.data),
        }
    }
}
