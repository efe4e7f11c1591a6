//! The asynchronous side, polled by hand: no runtime is needed.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use baler::{BatchStream, ConsumerConfig};
use baler_common::record::{Projection, ReadError, RecordFields, Records, Schema};
use futures_core::Stream as _;

use crate::support::{Folder, Order, send_orders};

/// Unparks the thread that polls.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

type Next<T> = Option<Result<baler::Batch<T>, baler::Error>>;

fn next<T>(mut stream: Pin<&mut BatchStream<T>>) -> Next<T> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match stream.as_mut().poll_next(&mut context) {
            Poll::Ready(next) => return next,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn stream_ends_when_all_batches_are_acknowledged() {
    let folder = Folder::new();
    send_orders(&folder.writer(), 40, 4);
    let consumer = baler::consume::<Order>(folder.reader()).unwrap();
    let mut stream = pin!(consumer.into_stream().unwrap());
    let mut orders = Vec::new();
    let mut given_back = false;
    while let Some(batch) = next(stream.as_mut()) {
        let batch = batch.unwrap();
        if !given_back && orders.len() == 20 {
            // It comes again, also at the end.
            given_back = true;
            drop(batch);
            continue;
        }
        orders.extend(batch.iter().map(|order| order.id));
        batch.ack().unwrap();
    }
    orders.sort_unstable();
    assert!(orders.into_iter().eq(0..40));
    let mut after = baler::consume::<Order>(folder.reader()).unwrap();
    assert!(after.next().is_none());
}

#[test]
fn stream_that_is_dropped_ends_its_consumer() {
    let folder = Folder::new();
    send_orders(&folder.writer(), 8, 4);
    let mut config: ConsumerConfig = folder.reader().parse().unwrap();
    config.follow = true;
    let consumer = baler::consume::<Order>(config).unwrap();
    let mut stream = Box::pin(consumer.into_stream().unwrap());
    let batch = next(stream.as_mut()).unwrap().unwrap();
    batch.ack().unwrap();
    drop(stream);
    // The consumer's name is free again, and the unacknowledged chunks are there.
    let orders = crate::support::wait_for("the end of the consumer", || {
        let mut consumer = baler::consume::<Order>(folder.reader()).ok()?;
        let batch = consumer.next()?.unwrap();
        Some(batch.iter().map(|order| order.id).collect::<Vec<_>>())
    });
    assert!(
        orders == [0, 1, 2, 3] || orders == [4, 5, 6, 7],
        "{orders:?}"
    );
}

/// An order whose reading panics.
struct Panics;

impl Records for Panics {
    fn schemas() -> Vec<&'static Arc<Schema>> {
        Order::schemas()
    }

    fn read_typed(_: usize, _: &Projection, _: RecordFields<'_>) -> Result<Self, ReadError> {
        panic!("no order is read")
    }
}

#[test]
fn a_panic_is_an_error_of_the_stream_and_its_batch_comes_again() {
    let folder = Folder::new();
    send_orders(&folder.writer(), 2, 2);
    let consumer = baler::consume::<Panics>(folder.reader()).unwrap();
    let mut stream = pin!(consumer.into_stream().unwrap());
    let error = next(stream.as_mut()).unwrap().err().unwrap();
    assert_eq!(error.to_string(), "the consumer panicked: no order is read");
    assert!(next(stream.as_mut()).is_none());
    let mut after = baler::consume::<Order>(folder.reader()).unwrap();
    assert_eq!(after.next().unwrap().unwrap().iter().count(), 2);
}
