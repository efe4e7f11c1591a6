//! Connects to a broker, and declares queues and exchanges there.
//!
//! Each connection declares them again. Existing ones stay as they are. A restored or replaced broker
//! gets its lost ones back. A queue that is created is logged.

mod socket;
#[cfg(test)]
mod tests;

use std::future::{pending, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Mutex;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use baler_common::number::{to_u64, to_usize};
use baler_common::random::random;
use baler_common::transport::uri::Host;
use baler_common::transport::{Failure, RetryClass};
use futures_core::Stream;
use lapin::options::{
    ConfirmSelectOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::tcp::AsyncTcpStream;
use lapin::types::{AMQPValue, FieldTable};
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPUri, AMQPUserInfo};
use lapin::{Channel, Connection, ConnectionProperties, Queue};

use super::config::{AmqpConfig, QueueType, TapTarget};
use super::error;
use socket::{Socket, this_runtime};

/// A connection, and a channel on which all declarations are made.
pub(crate) struct Connected {
    pub(crate) connection: Connection,
    pub(crate) channel: Channel,
}

/// Runs `body` on a new thread with its own runtime. So it neither needs nor disturbs a runtime of the
/// application. `panicked` takes the failure of an `operation` that ends with a panic.
pub(crate) fn spawn<F: Future<Output = ()>>(
    name: &str,
    operation: &'static str,
    body: impl FnOnce() -> F + Send + 'static,
    panicked: impl FnOnce(Failure) + Send + 'static,
) -> Result<JoinHandle<()>, Failure> {
    let failed = |error: io::Error| Failure::retry("set up", error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let run = move || {
        if let Err(failure) = Failure::catching(operation, || runtime.block_on(body())) {
            panicked(failure);
        }
        // A drop would wait for a running name lookup, without a deadline.
        runtime.shutdown_background();
    };
    thread::Builder::new()
        .name(name.into())
        .spawn(run)
        .map_err(failed)
}

/// Connects to one of the hosts and declares, before `by` and within the configured time.
///
/// It tries the hosts in turn from a random one on, so that many clients spread over a cluster. Each
/// host has a share of the time. If shares would be too short to connect in, some hosts wait for the
/// next attempt.
///
/// It fails for good only if every host does so: a host that is away may accept the client later.
pub(crate) async fn connect(
    config: &AmqpConfig,
    name: &'static str,
    by: Instant,
) -> Result<Connected, Failure> {
    let by = by.min(Instant::now() + config.connect_timeout);
    let first = random_below(config.hosts.len());
    let mut failures: Vec<(&Host, Failure)> = Vec::new();
    let (before, from) = config.hosts.split_at(first);
    // Numbered from the last one, since the hosts that are left share the time.
    let order: Vec<_> = (1_u32..).zip(from.iter().chain(before).rev()).collect();
    for (hosts_left, host) in order.into_iter().rev() {
        let left = time_left(by);
        let share = (left / hosts_left).max(left.min(MIN_CONNECT_SHARE));
        let until = Instant::now() + share;
        let connecting = tokio::time::timeout_at(until.into(), open(config, host, name));
        match connecting.await {
            Ok(Ok(connected)) => return Ok(connected),
            Ok(Err(failure)) => failures.push((host, failure)),
            Err(_) => failures.push((host, Failure::retry("connect to", "no answer in time"))),
        }
    }
    Err(merge_failures(failures))
}

/// Connects as [`connect`] does, for publishing: the broker confirms each message on the channel.
pub(crate) async fn connect_to_publish(
    config: &AmqpConfig,
    name: &'static str,
    by: Instant,
) -> Result<Connected, Failure> {
    let connected = connect(config, name, by).await?;
    let selecting = connected
        .channel
        .confirm_select(ConfirmSelectOptions::default());
    match tokio::time::timeout_at(by.into(), selecting).await {
        Ok(Ok(())) => Ok(connected),
        Ok(Err(error)) => Err(error::of_setup("set up", &error)),
        Err(_) => Err(Failure::retry("set up", "no answer in time")),
    }
}

/// The shortest share of a host. Connecting and declaring takes milliseconds, and a second on a broker
/// that has just started.
const MIN_CONNECT_SHARE: Duration = Duration::from_millis(1500);

/// A random number below `bound`.
fn random_below(bound: usize) -> usize {
    to_usize(random() % to_u64(bound).max(1))
}

/// The failures of the hosts as one failure: the first that may pass, if there is one.
fn merge_failures(mut failures: Vec<(&Host, Failure)>) -> Failure {
    if failures.len() > 1 {
        for (host, failure) in &mut failures {
            failure.message = format!("{host}: {}", failure.message).into();
        }
    }
    failures.sort_by_key(|(_, failure)| failure.class != RetryClass::Retry);
    let mut failures = failures.into_iter().map(|(_, failure)| failure);
    let Some(mut failure) = failures.next() else {
        return Failure::last("connect to", "no host is named");
    };
    for other in failures {
        failure.message = format!("{}; {}", failure.message, other.message).into();
    }
    failure
}

async fn open(config: &AmqpConfig, host: &Host, name: &'static str) -> Result<Connected, Failure> {
    let failed = |error: lapin::Error| error::of_connecting(&error);
    let properties = ConnectionProperties::default().with_connection_name(name.into());
    let (socket, attempt) = Socket::connect(config, host).await?;
    let uri = uri(config)?;
    // lapin takes it once: without its recovery it does not connect again.
    let socket = Mutex::new(Some(socket));
    let hand_over = async move |_, _| {
        let socket = socket.lock().ok().and_then(|mut socket| socket.take());
        let socket = socket.ok_or(io::ErrorKind::NotConnected);
        Ok(AsyncTcpStream::Plain(socket.map_err(io::Error::from)?))
    };
    let connecting = Connection::connector(uri, this_runtime(), hand_over, properties);
    let connection = connecting.await.map_err(failed)?;
    attempt.succeeded();
    let channel = connection.create_channel().await.map_err(failed)?;
    let connected = Connected {
        connection,
        channel,
    };
    declare(&connected, config).await?;
    Ok(connected)
}

/// What lapin needs to know of the URI: not the host, since it gets a connected socket.
fn uri(config: &AmqpConfig) -> Result<AMQPUri, Failure> {
    let heartbeat = config.heartbeat.as_secs().max(1);
    Ok(AMQPUri {
        authority: AMQPAuthority {
            userinfo: AMQPUserInfo {
                username: config.user.to_string(),
                password: config.password.read()?,
            },
            ..AMQPAuthority::default()
        },
        vhost: config.vhost.to_string(),
        query: AMQPQueryString {
            // AMQP counts it in 16 bits.
            heartbeat: Some(u16::try_from(heartbeat).unwrap_or(u16::MAX)),
            ..AMQPQueryString::default()
        },
        ..AMQPUri::default()
    })
}

impl Connected {
    /// Closes the connection. The broker's answer confirms that it has got all messages.
    pub(crate) async fn close(self, by: Instant) -> Result<(), Failure> {
        let by = by.min(Instant::now() + CLOSE_AT_MOST);
        let closing = self.connection.close(200, "OK".into());
        match tokio::time::timeout_at(by.into(), closing).await {
            Ok(closed) => closed.map_err(|error| error::of_use("close", &error)),
            Err(_) => Err(Failure::retry("close", "no answer in time")),
        }
    }
}

/// The longest time for a broker's answer to a close.
const CLOSE_AT_MOST: Duration = Duration::from_secs(5);

/// The next item of a stream.
pub(crate) async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)).await
}

/// The time until `by`, zero if that is past.
pub(crate) fn time_left(by: Instant) -> Duration {
    by.saturating_duration_since(Instant::now())
}

/// Waits until this time. Without a time it waits for ever.
pub(crate) async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => pending().await,
    }
}

/// Declares the exchange, the queue or one for each lane, their bindings and the queue for dead
/// letters, as far as the settings name them.
async fn declare(connected: &Connected, config: &AmqpConfig) -> Result<(), Failure> {
    let channel = &connected.channel;
    match config.tap_target {
        None if config.declare => {
            let declared = declare_names(connected, config).await;
            declared.map_err(|error| error::of_declaration(&error))
        }
        None | Some(TapTarget::Stream) => Ok(()),
        Some(TapTarget::Exchange) => declare_tap(channel, config).await,
        Some(TapTarget::Queue) => check_unread(channel, config).await,
    }
}

async fn declare_names(connected: &Connected, config: &AmqpConfig) -> lapin::Result<()> {
    let (channel, names) = (&connected.channel, &config.names);
    if let Some(exchange) = names.exchange.as_deref().filter(|name| is_declarable(name)) {
        let options = ExchangeDeclareOptions {
            durable: true,
            ..ExchangeDeclareOptions::default()
        };
        let kind = names.exchange_kind.clone();
        let none = FieldTable::default();
        channel
            .exchange_declare(exchange.into(), kind, options, none)
            .await?;
    }
    if let Some(dead) = &names.dead_letter_queue {
        let arguments = arguments(config.queue_type);
        declare_queue(connected, config, dead, arguments).await?;
    }
    let Some(queue) = &names.queue else {
        return Ok(());
    };
    let keys = names.of_lanes(&names.routing_key);
    for (queue, key) in names.of_lanes(queue).into_iter().zip(keys) {
        let arguments = queue_arguments(config);
        declare_queue(connected, config, &queue, arguments).await?;
        if let Some(exchange) = &names.exchange {
            bind(channel, &queue, exchange, &key).await?;
        }
    }
    Ok(())
}

/// Declares a durable queue. Logs that it is created if the broker has none of this name.
async fn declare_queue(
    connected: &Connected,
    config: &AmqpConfig,
    queue: &str,
    arguments: FieldTable,
) -> lapin::Result<()> {
    let durable = QueueDeclareOptions::durable();
    // The broker closes the channel over a queue that is missing.
    let channel = connected.connection.create_channel().await?;
    let found = find_queue(&channel, queue).await;
    if found.is_err_and(|error| error::is_missing(&error)) {
        // Before the declaration: its answer may be lost, and the next attempt finds the queue.
        let queue_type = config.queue_type.name();
        tracing::info!(endpoint = %config, "creating the {queue_type} queue {queue}");
    }
    connected
        .channel
        .queue_declare(queue.into(), durable, arguments)
        .await
        .map(drop)
}

/// Asks the broker for a queue, without declaring it.
pub(crate) async fn find_queue(channel: &Channel, queue: &str) -> lapin::Result<Queue> {
    let passive = QueueDeclareOptions::default().passive();
    channel
        .queue_declare(queue.into(), passive, FieldTable::default())
        .await
}

/// Binds a queue to an exchange with this key.
async fn bind(
    channel: &Channel,
    queue: &str,
    exchange: &str,
    routing_key: &str,
) -> lapin::Result<()> {
    channel
        .queue_bind(
            queue.into(),
            exchange.into(),
            routing_key.into(),
            QueueBindOptions::default(),
            FieldTable::default(),
        )
        .await
}

/// The most chunks in the queue of a tap. The broker drops the oldest ones.
const TAP_CHUNKS: i64 = 10_000;

/// The most bytes in the queue of a tap.
const TAP_BYTES: i64 = 64 << 20;

/// Declares the queue of a tap at an exchange. Nobody else may use it, and it ends with the connection.
async fn declare_tap(channel: &Channel, config: &AmqpConfig) -> Result<(), Failure> {
    let failed = |error: lapin::Error| error::of_setup("look at", &error);
    let names = &config.names;
    let (Some(queue), Some(exchange)) = (&names.queue, &names.exchange) else {
        return Err(Failure::last("look at", "no exchange is named"));
    };
    let options = QueueDeclareOptions::exclusive().auto_delete();
    channel
        .queue_declare((**queue).into(), options, tap_arguments())
        .await
        .map_err(failed)?;
    for key in names.of_lanes(&names.routing_key) {
        bind(channel, queue, exchange, &key).await.map_err(failed)?;
    }
    Ok(())
}

/// Checks that a queue exists and has no consumers: a look would take chunks from them.
async fn check_unread(channel: &Channel, config: &AmqpConfig) -> Result<(), Failure> {
    const OPERATION: &str = "look at";
    let Some(queue) = config.names.queue.as_deref() else {
        return Err(Failure::last(OPERATION, "no queue is named"));
    };
    let found = find_queue(channel, queue).await;
    let found = found.map_err(|error| error::of_setup(OPERATION, &error))?;
    match found.consumer_count() {
        0 => Ok(()),
        consumers => Err(Failure::last(
            OPERATION,
            format!(
                "the queue {queue} has consumers ({consumers}), and a look would take chunks from \
                 them; tap the exchange that feeds it (exchange=name&routing_key=key) or a running \
                 command's --metrics address, or look when the consumers are gone"
            ),
        )),
    }
}

/// Whether an exchange can be declared: names that begin with `amq.` belong to the broker.
fn is_declarable(exchange: &str) -> bool {
    !exchange.starts_with("amq.")
}

/// The arguments of the queue's declaration.
pub(crate) fn queue_arguments(config: &AmqpConfig) -> FieldTable {
    let mut arguments = arguments(config.queue_type);
    config.arguments.add_to(config.queue_type, &mut arguments);
    let mut set = |name: &str, value: &str| {
        arguments.insert(name.into(), AMQPValue::LongString(value.into()));
    };
    let names = &config.names;
    if let Some(dead) = &names.dead_letter_queue {
        // The exchange without a name knows every queue by its name.
        set("x-dead-letter-exchange", "");
        set("x-dead-letter-routing-key", dead);
    }
    if let Some(exchange) = &names.dead_letter_exchange {
        set("x-dead-letter-exchange", exchange);
        if let Some(key) = &names.dead_letter_routing_key {
            set("x-dead-letter-routing-key", key);
        }
    }
    arguments
}

/// The arguments of the queue that a tap declares at an exchange.
pub(crate) fn tap_arguments() -> FieldTable {
    let mut limits = arguments(QueueType::Classic);
    for (name, most) in [
        ("x-max-length", TAP_CHUNKS),
        ("x-max-length-bytes", TAP_BYTES),
    ] {
        limits.insert(name.into(), AMQPValue::LongLongInt(most));
    }
    limits
}

fn arguments(queue_type: QueueType) -> FieldTable {
    let mut arguments = FieldTable::default();
    let queue_type = AMQPValue::LongString(queue_type.name().into());
    arguments.insert("x-queue-type".into(), queue_type);
    arguments
}
