//! A message of a stream that tells it from another stream of the same name.

use std::time::Duration;

use baler_common::transport::Failure;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Connection};

use crate::client::next;
use crate::config::Start;
use crate::{error, headers};

/// How long a replica of a stream may be behind. A stream that does not deliver the landmark in this
/// time does not have it.
const REPLICA_LAG: Duration = Duration::from_secs(2);

/// The last message before a position in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Landmark {
    pub(super) offset: u64,
    /// The CRC-32C of its bytes.
    pub(super) checksum: u32,
}

impl Landmark {
    /// Whether the stream has this message, or has removed it by its limits. Otherwise the stream was
    /// made anew.
    pub(super) async fn is_there(
        self,
        connection: &Connection,
        queue: &str,
    ) -> Result<bool, Failure> {
        let failed = |error: lapin::Error| error::of_setup("read from", &error);
        // A channel of its own: the reader's deliveries are numbered without gaps.
        let channel = connection.create_channel().await.map_err(failed)?;
        let looked = tokio::time::timeout(REPLICA_LAG, self.look(&channel, queue)).await;
        let closed = channel.close(200, "".into()).await;
        let is_there = looked.unwrap_or(Ok(false)).map_err(failed)?;
        closed.map_err(failed)?;
        Ok(is_there)
    }

    async fn look(self, channel: &Channel, queue: &str) -> lapin::Result<bool> {
        channel.basic_qos(1, BasicQosOptions::default()).await?;
        let mut arguments = FieldTable::default();
        let start = Start::Offset(self.offset);
        arguments.insert("x-stream-offset".into(), start.argument());
        let options = BasicConsumeOptions::default();
        let consuming = channel.basic_consume(queue.into(), "".into(), options, arguments);
        let mut consumer = consuming.await?;
        while let Some(delivery) = next(&mut consumer).await.transpose()? {
            let offset = headers::stream_offset(&delivery.properties);
            // A stream begins with whole batches.
            if offset >= Some(self.offset) {
                let checksum = crc32c::crc32c(&delivery.data);
                return Ok(offset > Some(self.offset) || checksum == self.checksum);
            }
            let tag = delivery.delivery_tag;
            channel.basic_ack(tag, BasicAckOptions::default()).await?;
        }
        Ok(false)
    }
}
