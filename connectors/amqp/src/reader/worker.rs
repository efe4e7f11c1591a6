//! The thread that reads. It connects again after each failure that may pass.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_common::random::random;
use baler_common::transport::{Backoff, Failure, RetryClass, RetryPolicy};
use futures_core::Stream;
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions,
};
use lapin::types::FieldTable;
use lapin::{Channel, Connection, Consumer, Event};

use super::ledger::{Acknowledgement, Nack};
use super::position::{PositionFile, StreamPosition};
use super::state::{Orders, ReaderState, quarter};
use crate::client::{Connected, connect, find_queue, next, sleep_until};
use crate::config::{AmqpConfig, QueueType};
use crate::error;

/// The upper end of the first pause between two attempts to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Reads until it is stopped, or fails for good.
pub(super) async fn run(shared: Arc<ReaderState>, config: Arc<AmqpConfig>) {
    let worker = Worker {
        shared: &shared,
        config: &config,
    };
    let mut position = None;
    worker.run(&mut position).await;
    let saved = shared.lock().to_save();
    if let (Some(file), Some(saved)) = (&mut position, saved)
        && let Err(failure) = file.save(saved)
    {
        shared.lock().close_failure = Some(failure);
    }
}

#[derive(Clone, Copy)]
struct Worker<'a> {
    shared: &'a ReaderState,
    config: &'a AmqpConfig,
}

impl Worker<'_> {
    async fn run(self, position: &mut Option<PositionFile>) {
        let mut policy = RetryPolicy::default();
        policy.min_delay = FIRST_PAUSE;
        policy.max_delay = self.config.reconnect_max;
        policy.seed = random();
        let mut backoff = Backoff::default();
        loop {
            let started = Instant::now();
            let connected = tokio::select! {
                connected = self.open(position) => connected,
                () = self.stopped() => return,
            };
            let read = match connected {
                Ok(connected) => self.read(connected, position).await,
                Err(failure) => Err(failure),
            };
            let Err(failure) = read else { return };
            let is_final = failure.class == RetryClass::Final;
            self.shared.fail(failure);
            if is_final {
                return;
            }
            // A connection that lasted does not mean that the next one succeeds.
            if started.elapsed() > self.config.reconnect_max {
                backoff.reset();
            }
            tokio::select! {
                () = tokio::time::sleep(backoff.pause(&policy)) => {}
                () = self.stopped() => return,
            }
        }
    }

    /// Connects. Before that it reads the position in a stream.
    async fn open(self, position: &mut Option<PositionFile>) -> Result<Connected, Failure> {
        let Self { shared, config } = self;
        if let (None, Some(path)) = (&position, &config.position_file) {
            let file = PositionFile::open(path, &format!("{} {}", config.vhost, shared.queue))?;
            if let Some(saved) = file.saved() {
                shared.lock().ledger.stream = Some(StreamPosition::saved(saved));
            }
            *position = Some(file);
        }
        let by = Instant::now() + config.connect_timeout;
        connect(config, "baler reader", by).await
    }

    async fn stopped(self) {
        while self.shared.lock().stop.is_none() {
            self.shared.work.notified().await;
        }
    }

    /// Reads until it is stopped, then closes the connection.
    async fn read(
        self,
        connected: Connected,
        position: &mut Option<PositionFile>,
    ) -> Result<(), Failure> {
        {
            let mut state = self.shared.lock();
            state.counts.connections += 1;
            state.connected = true;
        }
        let mut events = connected.connection.events_listener();
        let mut lag_channel = None;
        tokio::select! {
            // Nothing is on its way yet: such a chunk is neither in the queue nor here.
            () = self.ask_lag(&connected.connection, &mut lag_channel) => {}
            failure = ended(&mut events, &connected) => return Err(failure),
            () = self.stopped() => {}
        }
        let close_by = tokio::select! {
            consumed = self.consume(&connected, &mut events, position) => consumed?,
            never = self.watch_lag(&connected.connection, &mut lag_channel) => match never {},
        };
        // The broker's answer confirms that it has the acknowledgements.
        if let Err(failure) = connected.close(close_by).await {
            self.shared.lock().close_failure = Some(failure);
        }
        Ok(())
    }

    /// Reads until it is stopped. Returns the deadline for closing the connection.
    async fn consume(
        self,
        connected: &Connected,
        events: &mut (impl Stream<Item = Event> + Unpin),
        position: &mut Option<PositionFile>,
    ) -> Result<Instant, Failure> {
        let Self { shared, config } = self;
        let mut consumer: Option<Consumer> = None;
        let mut prefetch = 0;
        let mut ack_by: Option<Instant> = None;
        let mut save_by: Option<Instant> = None;
        let is_due = |by: Option<Instant>| by.is_some_and(|by| by <= Instant::now());
        loop {
            let orders = shared.lock().take_orders(is_due(ack_by));
            answer(&connected.channel, &orders).await?;
            if orders.acknowledgements.is_some() {
                ack_by = None;
            } else if orders.owed > 0 && ack_by.is_none() {
                ack_by = Some(Instant::now() + config.ack_interval);
            }
            if is_due(save_by) {
                self.save(position);
                save_by = None;
            } else if orders.is_unsaved && position.is_some() && save_by.is_none() {
                save_by = Some(Instant::now() + config.ack_interval);
            }
            if let Some(by) = orders.stop {
                return Ok(by);
            }
            let wanted = self.wanted(&orders, prefetch);
            if wanted > prefetch {
                if let Some(consumer) = consumer.take() {
                    self.cancel(connected, consumer).await?;
                }
                consumer = Some(self.subscribe(connected, wanted).await?);
                prefetch = wanted;
                continue;
            }
            tokio::select! {
                () = shared.work.notified() => {}
                delivery = delivered(&mut consumer) => match delivery {
                    Some(delivery) => shared.arrive(delivery.map_err(lost)?)?,
                    None => {
                        let message = "the broker cancelled the consumer";
                        return Err(Failure::retry("read from", message));
                    }
                },
                failure = ended(events, connected) => return Err(failure),
                () = sleep_until(ack_by) => {}
                () = sleep_until(save_by) => {}
            }
        }
    }

    /// The `prefetch` that suits the demand, if it is above the present one.
    fn wanted(self, orders: &Orders, prefetch: u16) -> u16 {
        let config = self.config;
        let (demand, most) = (orders.demand, usize::from(config.prefetch.get()));
        let has_no_rival = config.queue_type == QueueType::Stream || config.arguments.single_active;
        let wanted = if has_no_rival && prefetch == 0 {
            // No other reader waits for the chunks that this one takes ahead. And a single active
            // consumer that subscribes again would lose its place to the next one in line.
            demand.min(1) * most
        } else if orders.is_starved && orders.owed == 0 {
            // An owner that gathers more chunks before it settles them would otherwise wait for ever.
            demand.min(usize::from(prefetch) * 2)
        } else {
            demand.min(most)
        };
        // AMQP counts it in 16 bits.
        u16::try_from(wanted).unwrap_or(u16::MAX)
    }

    /// Saves the watermark of a stream. It reports a failure and tries again later.
    fn save(self, position: &mut Option<PositionFile>) {
        let saved = self.shared.lock().to_save();
        let (Some(file), Some(saved)) = (position, saved) else {
            return;
        };
        match file.save(saved) {
            Ok(()) => {
                if let Some(stream) = &mut self.shared.lock().ledger.stream {
                    stream.is_unsaved = stream.to_save() != Some(saved);
                }
            }
            Err(failure) => self.shared.complain(failure),
        }
    }

    /// Lets the broker deliver up to `prefetch` messages ahead of the settled ones. The limit is one
    /// of the consumer: quorum queues refuse a limit of the channel, which could be changed later.
    async fn subscribe(self, connected: &Connected, prefetch: u16) -> Result<Consumer, Failure> {
        let Self { shared, config } = self;
        let failed = |error: lapin::Error| error::of_setup("read from", &error);
        let mut arguments = FieldTable::default();
        if config.queue_type == QueueType::Stream {
            self.compare_stream(connected).await?;
            let start = shared.lock().start().unwrap_or(config.start);
            arguments.insert("x-stream-offset".into(), start.argument());
        }
        let channel = &connected.channel;
        let qos = channel.basic_qos(prefetch, BasicQosOptions::default());
        qos.await.map_err(failed)?;
        // The broker makes up the consumer's name.
        let (queue, tag) = ((*shared.queue).into(), "".into());
        let consuming =
            channel.basic_consume(queue, tag, BasicConsumeOptions::default(), arguments);
        let consumer = consuming.await.map_err(failed)?;
        let mut state = shared.lock();
        state.prefetch = prefetch.into();
        state.ack_every = quarter(state.prefetch);
        if config.queue_type != QueueType::Stream {
            state.ack_every = state.ack_every.min(config.ack_every.get().into());
        }
        Ok(consumer)
    }

    /// Finds out whether the stream was made anew since it was last read.
    async fn compare_stream(self, connected: &Connected) -> Result<(), Failure> {
        let (shared, connection) = (self.shared, &connected.connection);
        let landmark = shared.lock().landmark();
        if let Some(landmark) = landmark
            && !landmark.is_there(connection, &shared.queue).await?
        {
            shared.begin_anew();
        }
        Ok(())
    }

    /// Ends a consumer, and takes the messages that are on their way to it.
    async fn cancel(self, connected: &Connected, mut consumer: Consumer) -> Result<(), Failure> {
        let options = BasicCancelOptions::default();
        let cancelling = connected.channel.basic_cancel(consumer.tag(), options);
        cancelling.await.map_err(lost)?;
        while let Some(delivery) = next(&mut consumer).await {
            self.shared.arrive(delivery.map_err(lost)?)?;
        }
        Ok(())
    }

    /// Asks how many messages the queue has, each `lag_interval`.
    async fn watch_lag(self, connection: &Connection, channel: &mut Option<Channel>) -> Infallible {
        if self.config.lag_interval.is_zero() {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(self.config.lag_interval).await;
            self.ask_lag(connection, channel).await;
        }
    }

    /// Asks how many messages the queue has, unless nobody wants to know.
    ///
    /// It has a channel of its own: the broker closes a channel that asks for a missing queue. The
    /// caller keeps that channel until the connection is closed: to drop it before spoils the close.
    async fn ask_lag(self, connection: &Connection, channel: &mut Option<Channel>) {
        if self.config.lag_interval.is_zero() {
            return;
        }
        match ask(connection, channel, &self.shared.queue).await {
            Ok(messages) => self.shared.lock().ready = Some(messages),
            // The reading channel reports the cause. The next turn opens a new channel here.
            Err(_) => *channel = None,
        }
    }
}

/// Waits until the connection, or the channel that reads, has ended.
async fn ended(events: &mut (impl Stream<Item = Event> + Unpin), connected: &Connected) -> Failure {
    loop {
        match next(events).await {
            // It concerns the channel that measures the lag.
            Some(Event::Error(error))
                if error.is_amqp_soft_error() && connected.channel.status().connected() => {}
            Some(Event::Error(error)) => return lost(error),
            Some(_) => {}
            None => return Failure::retry("read from", "the connection ended"),
        }
    }
}

fn lost(error: lapin::Error) -> Failure {
    error::of_use("read from", &error)
}

/// Sends nacks, then acknowledgements.
async fn answer(channel: &Channel, orders: &Orders) -> Result<(), Failure> {
    for Nack { tag, requeue } in orders.nacks.iter().copied() {
        let options = BasicNackOptions {
            multiple: false,
            requeue,
        };
        channel.basic_nack(tag, options).await.map_err(lost)?;
    }
    for Acknowledgement { tag, multiple } in orders.acknowledgements.iter().flatten().copied() {
        let options = BasicAckOptions { multiple };
        channel.basic_ack(tag, options).await.map_err(lost)?;
    }
    Ok(())
}

type Delivered = Option<lapin::Result<lapin::message::Delivery>>;

async fn delivered(consumer: &mut Option<Consumer>) -> Delivered {
    match consumer {
        Some(consumer) => next(consumer).await,
        None => std::future::pending().await,
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
    Ok(find_queue(channel, queue).await?.message_count().into())
}
