//! The thread that reads, and recovers by itself.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBuilder};
use baler_common::transport::{Failure, RetryClass};
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions,
    QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{Channel, Connection, Consumer, Event};

use super::ledger::{Acknowledgement, Nack};
use super::position::PositionFile;
use super::state::ReaderState;
use crate::client::{Connected, at, connect, next};
use crate::config::{AmqpConfig, QueueType, Start};
use crate::error;

/// The first pause between two attempts to connect, without its jitter.
const FIRST_PAUSE: Duration = Duration::from_millis(25);

/// Reads until it is stopped, or fails for good.
pub(super) async fn run(shared: Arc<ReaderState>, config: Arc<AmqpConfig>, queue: Box<str>) {
    let mut position = None;
    reconnecting(&shared, &config, &queue, &mut position).await;
    // Whatever the reason was, what is settled is settled.
    if let (Some(file), Some(next)) = (&mut position, shared.position())
        && let Err(failure) = file.save(next)
    {
        shared.set_close_failure(failure);
    }
}

async fn reconnecting(
    shared: &ReaderState,
    config: &AmqpConfig,
    queue: &str,
    position: &mut Option<PositionFile>,
) {
    // The jitter adds up to as much again.
    let longest = config.reconnect_max / 2;
    let pauses = || {
        ExponentialBuilder::new()
            .with_min_delay(FIRST_PAUSE.min(longest))
            .with_max_delay(longest)
            .with_jitter()
            .without_max_times()
            .build()
    };
    let mut pausing = pauses();
    loop {
        let started = Instant::now();
        let connecting = open(shared, config, queue, position);
        let connected = tokio::select! {
            connected = connecting => connected,
            () = stopped(shared) => return,
        };
        let failure = match connected {
            Ok(connected) => {
                shared.connected();
                let mut side = None;
                let watching = watch_lag(shared, config, queue, &connected.connection, &mut side);
                let consumed = tokio::select! {
                    consumed = consume(shared, config, queue, &connected, position) => consumed,
                    never = watching => match never {},
                };
                match consumed {
                    // Only the broker's answer tells that it has the acknowledgements.
                    Ok(by) => {
                        if let Err(failure) = connected.close(by).await {
                            shared.set_close_failure(failure);
                        }
                        return;
                    }
                    Err(failure) => failure,
                }
            }
            Err(failure) => failure,
        };
        let is_final = failure.class == RetryClass::Final;
        shared.fail(failure);
        if is_final {
            return;
        }
        // One that lasted is no sign that the next one does not.
        if started.elapsed() > config.reconnect_max {
            pausing = pauses();
        }
        let pause = pausing.next().unwrap_or(longest);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stopped(shared) => return,
        }
    }
}

/// Connects; the position in a stream comes first, since it says where to begin.
async fn open(
    shared: &ReaderState,
    config: &AmqpConfig,
    queue: &str,
    position: &mut Option<PositionFile>,
) -> Result<Connected, Failure> {
    if let (None, Some(path)) = (&position, &config.position_file) {
        let file = PositionFile::open(path, &format!("{} {queue}", config.vhost))?;
        if let Some(next) = file.saved() {
            shared.go_on_from(next);
        }
        *position = Some(file);
    }
    connect(
        config,
        "baler reader",
        Instant::now() + config.connect_timeout,
    )
    .await
}

async fn stopped(shared: &ReaderState) {
    while shared.stopped().is_none() {
        shared.work.notified().await;
    }
}

/// Reads until it is stopped; yields until when to say good-bye.
async fn consume(
    shared: &ReaderState,
    config: &AmqpConfig,
    queue: &str,
    connected: &Connected,
    position: &mut Option<PositionFile>,
) -> Result<Instant, Failure> {
    let lost = |error: lapin::Error| error::of_use("read from", &error);
    let channel = &connected.channel;
    let is_stream = config.queue_type == QueueType::Stream;
    let takes_all = is_stream || config.arguments.single_active;
    let mut events = connected.connection.events_listener();
    let mut consumer: Option<Consumer> = None;
    let mut prefetch = 0;
    let mut ack_by: Option<Instant> = None;
    let mut save_by: Option<Instant> = None;
    loop {
        let orders = shared.take();
        for Nack { tag, requeue } in orders.nacks {
            let options = BasicNackOptions {
                multiple: false,
                requeue,
            };
            channel.basic_nack(tag, options).await.map_err(lost)?;
        }
        let (quarter, ack_every) = acknowledged_by(config, prefetch);
        let due = |by: Option<Instant>| by.is_some_and(|by| by <= Instant::now());
        let is_urgent = orders.starved || orders.is_suspect || orders.stop.is_some();
        if due(ack_by) || orders.owed >= ack_every || is_urgent {
            // Whatever the broker is not told of counts against what it sends.
            let behind = if orders.starved { 0 } else { quarter };
            for Acknowledgement { tag, multiple } in shared.acknowledge(behind) {
                let options = BasicAckOptions { multiple };
                channel.basic_ack(tag, options).await.map_err(lost)?;
            }
            ack_by = None;
        } else if orders.owed > 0 && ack_by.is_none() {
            ack_by = Some(Instant::now() + config.ack_interval);
        }
        if due(save_by) {
            save(shared, position);
            save_by = None;
        } else if orders.unsaved && position.is_some() && save_by.is_none() {
            save_by = Some(Instant::now() + config.ack_interval);
        }
        if let Some(by) = orders.stop {
            return Ok(by);
        }
        let mut wanted = u16::try_from(orders.demand).unwrap_or(u16::MAX);
        if takes_all && prefetch == 0 {
            // Nobody else waits for what is taken ahead; and one active consumer that subscribes
            // once more would lose its place to the next one in line.
            wanted = wanted.min(1).saturating_mul(config.prefetch.get());
        } else if orders.starved && orders.owed == 0 {
            // Else an owner that gathers more than that before it settles would wait for ever.
            wanted = wanted.min(prefetch.saturating_mul(2));
        } else {
            wanted = wanted.min(config.prefetch.get());
        }
        if wanted > prefetch {
            if let Some(consumer) = consumer.take() {
                cancel(shared, connected, consumer).await?;
            }
            let arguments = match (is_stream, shared.position()) {
                (false, _) => FieldTable::default(),
                (true, Some(next)) => begins_at(Start::Offset(next)),
                (true, None) => begins_at(config.start),
            };
            consumer = Some(subscribe(connected, queue, wanted, arguments).await?);
            prefetch = wanted;
            let (_, ack_every) = acknowledged_by(config, prefetch);
            shared.set_prefetch(prefetch.into(), ack_every);
            continue;
        }
        tokio::select! {
            () = shared.work.notified() => {}
            delivery = delivered(&mut consumer) => match delivery {
                Some(Ok(delivery)) => shared.arrive(delivery)?,
                Some(Err(error)) => return Err(lost(error)),
                None => {
                    let message = "the broker cancelled the consumer";
                    return Err(Failure::retry("read from", message));
                }
            },
            event = next(&mut events) => match event {
                // The channel that measures the lag is none of ours.
                Some(Event::Error(error))
                    if error.is_amqp_soft_error() && channel.status().connected() => {}
                Some(Event::Error(error)) => return Err(lost(error)),
                Some(_) => {}
                None => return Err(Failure::retry("read from", "the connection ended")),
            },
            () = at(ack_by) => {}
            () = at(save_by) => {}
        }
    }
}

/// How many acknowledged deliveries may stay behind an unsettled one, and how many are worth a
/// message to the broker: it is told at least four times a `prefetch`.
fn acknowledged_by(config: &AmqpConfig, prefetch: u16) -> (usize, usize) {
    let quarter = usize::from(prefetch / 4).max(1);
    let counted = match config.queue_type {
        // Nothing is settled by it: it only lets the broker send more.
        QueueType::Stream => quarter,
        QueueType::Classic | QueueType::Quorum => usize::from(config.ack_every.get()).min(quarter),
    };
    (quarter, counted)
}

/// Saves the watermark of a stream. If that fails it is told, and tried again a moment later.
fn save(shared: &ReaderState, position: &mut Option<PositionFile>) {
    let (Some(file), Some(next)) = (position, shared.position()) else {
        return;
    };
    match file.save(next) {
        Ok(()) => shared.saved(next),
        Err(failure) => shared.complain(failure),
    }
}

/// The arguments of a consumer that begins there.
fn begins_at(start: Start) -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-stream-offset".into(), start.argument());
    arguments
}

type Delivered = Option<lapin::Result<lapin::message::Delivery>>;

async fn delivered(consumer: &mut Option<Consumer>) -> Delivered {
    match consumer {
        Some(consumer) => next(consumer).await,
        None => std::future::pending().await,
    }
}

/// Lets the broker deliver up to `prefetch` messages ahead of what is settled. The limit is that of
/// one consumer: a limit of the channel could be changed later, but quorum queues refuse it.
async fn subscribe(
    connected: &Connected,
    queue: &str,
    prefetch: u16,
    arguments: FieldTable,
) -> Result<Consumer, Failure> {
    let failed = |error: lapin::Error| error::of_setup("read from", &error);
    let channel = &connected.channel;
    let qos = channel.basic_qos(prefetch, BasicQosOptions::default());
    qos.await.map_err(failed)?;
    channel
        .basic_consume(
            queue.into(),
            // The broker makes up a name.
            "".into(),
            BasicConsumeOptions::default(),
            arguments,
        )
        .await
        .map_err(failed)
}

/// Ends a consumer and takes what was on its way to it.
async fn cancel(
    shared: &ReaderState,
    connected: &Connected,
    mut consumer: Consumer,
) -> Result<(), Failure> {
    let lost = |error: lapin::Error| error::of_use("read from", &error);
    let cancelling = connected
        .channel
        .basic_cancel(consumer.tag(), BasicCancelOptions::default());
    cancelling.await.map_err(lost)?;
    while let Some(delivery) = next(&mut consumer).await {
        shared.arrive(delivery.map_err(lost)?)?;
    }
    Ok(())
}

/// Asks how many messages the queue holds, each `lag_interval`, on a channel of its own: the broker
/// closes a channel over a queue that is not there, and that one must not be the one that reads.
/// The owner keeps it until the connection is closed: a channel that is dropped meanwhile spoils
/// that.
async fn watch_lag(
    shared: &ReaderState,
    config: &AmqpConfig,
    queue: &str,
    connection: &Connection,
    channel: &mut Option<Channel>,
) -> Infallible {
    if config.lag_interval.is_zero() {
        return std::future::pending().await;
    }
    loop {
        match ask(connection, channel, queue).await {
            Ok(messages) => shared.set_ready(messages),
            // Who reads learns why from its own channel; the next turn takes a new one here.
            Err(_) => *channel = None,
        }
        tokio::time::sleep(config.lag_interval).await;
    }
}

async fn ask(
    connection: &Connection,
    channel: &mut Option<Channel>,
    queue: &str,
) -> lapin::Result<u64> {
    let channel = match channel {
        Some(channel) => channel,
        None => channel.insert(connection.create_channel().await?),
    };
    let options = QueueDeclareOptions {
        passive: true,
        ..QueueDeclareOptions::default()
    };
    let declared = channel
        .queue_declare(queue.into(), options, FieldTable::default())
        .await?;
    Ok(declared.message_count().into())
}
