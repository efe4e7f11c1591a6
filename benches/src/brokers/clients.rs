//! The client libraries, to ask brokers and to look at what is there.

use std::time::Duration;

use lapin::options::{BasicGetOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Connection, ConnectionProperties};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::Message as _;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use tokio::runtime::{Builder, Runtime};

use crate::failure::Failure;

/// How long a broker may take to answer.
const ANSWER: Duration = Duration::from_secs(30);

/// One connection to RabbitMQ with one channel, and the runtime that drives it.
#[derive(Debug)]
pub(super) struct Amqp {
    runtime: Runtime,
    channel: Channel,
    _connection: Connection,
}

impl Amqp {
    /// Connects as `guest`.
    pub(super) fn connect(address: &str) -> Result<Self, Failure> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Failure::cannot("make a runtime"))?;
        // Nobody drives the connection while another process writes.
        let uri = format!("amqp://guest:guest@{address}?heartbeat=0");
        let connecting = async {
            let connection = Connection::connect(&uri, ConnectionProperties::default()).await?;
            let channel = connection.create_channel().await?;
            Ok::<_, lapin::Error>((connection, channel))
        };
        let (connection, channel) = runtime
            .block_on(connecting)
            .map_err(Failure::cannot("connect to RabbitMQ"))?;
        Ok(Self {
            runtime,
            channel,
            _connection: connection,
        })
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Makes a durable queue.
    pub(super) fn declare(&self, queue: &str, queue_type: &str) -> Result<(), Failure> {
        let mut arguments = FieldTable::default();
        let queue_type = AMQPValue::LongString(queue_type.into());
        arguments.insert("x-queue-type".into(), queue_type);
        let options = QueueDeclareOptions {
            durable: true,
            ..QueueDeclareOptions::default()
        };
        let declaring = self.channel.queue_declare(queue.into(), options, arguments);
        self.block_on(declaring)
            .map_err(Failure::cannot("declare a queue"))?;
        Ok(())
    }

    /// How many messages wait in a queue.
    pub(super) fn waiting(&self, queue: &str) -> Result<u64, Failure> {
        let options = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let asking = self
            .channel
            .queue_declare(queue.into(), options, FieldTable::default());
        let queue = self
            .block_on(asking)
            .map_err(Failure::cannot("ask for a queue"))?;
        Ok(u64::from(queue.message_count()))
    }

    /// Takes a message from a queue, if there is one.
    pub(super) fn get(&self, queue: &str) -> Result<Option<Vec<u8>>, Failure> {
        let options = BasicGetOptions { no_ack: true };
        let getting = self.channel.basic_get(queue.into(), options);
        let got = self
            .block_on(getting)
            .map_err(Failure::cannot("get a message"))?;
        Ok(got.map(|message| message.delivery.data))
    }

    pub(super) fn delete(&self, queue: &str) -> Result<(), Failure> {
        let deleting = self
            .channel
            .queue_delete(queue.into(), QueueDeleteOptions::default());
        self.block_on(deleting)
            .map_err(Failure::cannot("delete a queue"))?;
        Ok(())
    }
}

/// One consumer without a group, to ask a Kafka cluster.
pub(super) struct Kafka {
    consumer: BaseConsumer,
    config: ClientConfig,
}

impl Kafka {
    pub(super) fn connect(address: &str) -> Result<Self, Failure> {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", address)
            .set("group.id", "baler-benches")
            .set("enable.auto.commit", "false")
            .set("queued.max.messages.kbytes", "8192");
        let consumer = config.create();
        Ok(Self {
            consumer: consumer.map_err(Failure::cannot("make a consumer"))?,
            config,
        })
    }

    /// Makes a topic of one partition.
    pub(super) fn create(&self, topic: &str) -> Result<(), Failure> {
        let admin: AdminClient<DefaultClientContext> = self
            .config
            .create()
            .map_err(Failure::cannot("make an admin client"))?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Failure::cannot("make a runtime"))?;
        let new = NewTopic::new(topic, 1, TopicReplication::Fixed(1));
        let options = AdminOptions::new().operation_timeout(Some(ANSWER));
        let results = runtime
            .block_on(admin.create_topics([&new], &options))
            .map_err(Failure::cannot("create a topic"))?;
        for result in results {
            result.map_err(|(_, code)| Failure::cannot("create a topic")(code))?;
        }
        Ok(())
    }

    /// The offset behind the last message of a topic's one partition.
    pub(super) fn end(&self, topic: &str) -> Result<u64, Failure> {
        let watermarks = self.consumer.fetch_watermarks(topic, 0, ANSWER);
        let (_, high) = watermarks.map_err(Failure::cannot("ask for offsets"))?;
        Ok(u64::try_from(high).unwrap_or(0))
    }

    /// So many messages of a topic's one partition, from this offset on.
    pub(super) fn read(
        &self,
        topic: &str,
        from: u64,
        messages: u64,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        let offset = Offset::Offset(i64::try_from(from).unwrap_or(0));
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, 0, offset)
            .and_then(|()| self.consumer.assign(&list))
            .map_err(Failure::cannot("assign a partition"))?;
        let mut read = Vec::new();
        for _ in 0..messages {
            let polled = self.consumer.poll(ANSWER);
            let message = polled.ok_or_else(|| Failure::new("messages are missing"))?;
            let message = message.map_err(Failure::cannot("read a message"))?;
            read.push(message.payload().unwrap_or_default().to_vec());
        }
        self.consumer
            .unassign()
            .map_err(Failure::cannot("unassign a partition"))?;
        Ok(read)
    }
}
