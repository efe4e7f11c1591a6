//! The thread that reads, and recovers by itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBuilder};
use baler_common::transport::RetryClass;
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions,
};
use lapin::types::FieldTable;
use lapin::{Consumer, Event};

use super::ledger::Acknowledgement;
use super::shared::{Alone, Shared};
use crate::config::AmqpConfig;
use crate::connect::{Connected, connect, next};
use crate::error::Failure;

/// The upper end of the first pause between two attempts to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Reads until it is stopped, or fails for good.
pub(super) async fn run(shared: Arc<Shared>, config: Arc<AmqpConfig>, queue: Box<str>) {
    let pauses = || {
        ExponentialBuilder::new()
            .with_min_delay(FIRST_PAUSE.min(config.reconnect_max))
            .with_max_delay(config.reconnect_max)
            .with_jitter()
            .without_max_times()
            .build()
    };
    let mut pausing = pauses();
    loop {
        let started = Instant::now();
        let connecting = connect(&config, "baler reader", started + config.connect_timeout);
        let connected = tokio::select! {
            connected = connecting => connected,
            () = stopped(&shared) => return,
        };
        let failure = match connected {
            Ok(connected) => {
                shared.connected();
                match consume(&shared, &config, &queue, &connected).await {
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
        let pause = pausing.next().unwrap_or(config.reconnect_max);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stopped(&shared) => return,
        }
    }
}

async fn stopped(shared: &Shared) {
    while shared.stopped().is_none() {
        shared.work.notified().await;
    }
}

/// Reads until it is stopped; yields until when to say good-bye.
async fn consume(
    shared: &Shared,
    config: &AmqpConfig,
    queue: &str,
    connected: &Connected,
) -> Result<Instant, Failure> {
    let lost = |error: lapin::Error| Failure::of_use("read from", &error);
    let mut events = connected.connection.events_listener();
    let mut consumer: Option<Consumer> = None;
    let mut prefetch = 0;
    let mut ack_by: Option<Instant> = None;
    loop {
        let orders = shared.take();
        for Alone { tag, requeue } in orders.alone {
            let options = BasicNackOptions {
                multiple: false,
                requeue,
            };
            connected
                .channel
                .basic_nack(tag, options)
                .await
                .map_err(lost)?;
        }
        let quarter = usize::from(prefetch / 4).max(1);
        let ack_every = usize::from(config.ack_every.get()).min(quarter);
        let due = ack_by.is_some_and(|by| by <= Instant::now());
        if due || orders.owed >= ack_every || orders.stop.is_some() {
            for Acknowledgement { tag, multiple } in shared.acknowledge(quarter) {
                let options = BasicAckOptions { multiple };
                connected
                    .channel
                    .basic_ack(tag, options)
                    .await
                    .map_err(lost)?;
            }
            ack_by = None;
        } else if orders.owed > 0 && ack_by.is_none() {
            ack_by = Some(Instant::now() + config.ack_interval);
        }
        if let Some(by) = orders.stop {
            return Ok(by);
        }
        let wanted = u16::try_from(orders.demand).unwrap_or(u16::MAX);
        let wanted = wanted.min(config.prefetch.get());
        if wanted > prefetch {
            if let Some(consumer) = consumer.take() {
                cancel(shared, connected, consumer).await?;
            }
            consumer = Some(subscribe(connected, queue, wanted).await?);
            prefetch = wanted;
            let quarter = usize::from(prefetch / 4).max(1);
            shared.set_ack_every(usize::from(config.ack_every.get()).min(quarter));
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
                Some(Event::Error(error)) => return Err(lost(error)),
                Some(_) => {}
                None => return Err(Failure::retry("read from", "the connection ended")),
            },
            () = at(ack_by) => {}
        }
    }
}

/// Waits for a time; for ever if there is none.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
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
async fn subscribe(connected: &Connected, queue: &str, prefetch: u16) -> Result<Consumer, Failure> {
    let failed = |error: lapin::Error| Failure::of_setup("read from", &error);
    let channel = &connected.channel;
    let qos = channel.basic_qos(prefetch, BasicQosOptions::default());
    qos.await.map_err(failed)?;
    channel
        .basic_consume(
            queue.into(),
            // The broker makes up a name.
            "".into(),
            BasicConsumeOptions::default(),
            FieldTable::default(),
        )
        .await
        .map_err(failed)
}

/// Ends a consumer and takes what was on its way to it.
async fn cancel(
    shared: &Shared,
    connected: &Connected,
    mut consumer: Consumer,
) -> Result<(), Failure> {
    let lost = |error: lapin::Error| Failure::of_use("read from", &error);
    let cancelling = connected
        .channel
        .basic_cancel(consumer.tag(), BasicCancelOptions::default());
    cancelling.await.map_err(lost)?;
    while let Some(delivery) = next(&mut consumer).await {
        shared.arrive(delivery.map_err(lost)?)?;
    }
    Ok(())
}
