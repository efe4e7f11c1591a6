//! The fate of a batch: acknowledged, delivered again, or put into quarantine.

use std::collections::BTreeMap;
use std::fs;
use std::num::ParseIntError;

use baler::{Batch, ConsumerConfig, Error, Record};

use crate::support::{Folder, Order, PATIENCE, order, send_orders};

/// The first batch of a consumer of orders.
fn first(consumer: &mut baler::Consumer<Order>) -> Batch<Order> {
    consumer.next().unwrap().unwrap()
}

fn ids(batch: &Batch<Order>) -> Vec<u64> {
    batch.iter().map(|order| order.id).collect()
}

/// The reasons in a quarantine that is a folder.
fn reasons(folder: &str) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let files = files.filter(|it| it.extension().is_some_and(|it| it == "json"));
    let document = |path| -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let reason = |path| document(path)["reason"].as_str().unwrap().to_owned();
    files.map(reason).collect()
}

#[test]
fn a_batch_that_is_dropped_comes_again_and_one_that_is_acknowledged_does_not() {
    let folder = Folder::new();
    send_orders(&folder.writer(), 4, 2);
    let mut consumer = baler::consume::<Order>(folder.reader()).unwrap();
    let batch = first(&mut consumer);
    assert_eq!(ids(&batch), [0, 1]);
    let identity = batch.identity();
    drop(batch);
    let again = first(&mut consumer);
    assert_eq!((ids(&again), again.identity()), (vec![0, 1], identity));
    assert!(again.is_redelivered());
    again.ack().unwrap();
    assert_eq!(consumer.report().acknowledged, 1);
    let open = first(&mut consumer);
    assert_eq!(ids(&open), [2, 3]);
    drop(consumer);
    // The consumer has ended, so the batch cannot be acknowledged.
    assert!(matches!(open.ack(), Err(Error::Closed)));

    let mut next = baler::consume::<Order>(folder.reader()).unwrap();
    let batch = first(&mut next);
    assert_eq!(ids(&batch), [2, 3]);
    batch.ack().unwrap();
    assert!(next.next().is_none());
}

#[test]
fn a_batch_that_the_handler_refuses_comes_again_and_then_goes_to_the_quarantine() {
    let folder = Folder::new();
    send_orders(&folder.writer(), 6, 2);
    let mut config: ConsumerConfig = folder.reader().parse().unwrap();
    config.quarantine = Some(folder.path("quarantine").into());
    config.max_attempts = 3;
    let mut seen = BTreeMap::<u64, u32>::new();
    let consumer = baler::consume::<Order>(config).unwrap();
    let report = consumer.for_each(|order| {
        *seen.entry(order.id).or_default() += 1;
        match order.id {
            3 => Err("the warehouse has no such item"),
            _ => Ok(()),
        }
    });
    let report = report.unwrap();
    // Two of three, and the last chunk, which marks the end.
    assert_eq!((report.acknowledged, report.quarantined), (3, 1));
    assert_eq!(report.given_back, 3);
    let counts: Vec<u32> = seen.into_values().collect();
    assert_eq!(counts, [1, 1, 3, 3, 1, 1]);
    let reasons = reasons(&folder.path("quarantine"));
    let expected = "the consumer gave this chunk back 3 times; the last time: the warehouse has no \
                    such item";
    assert_eq!(reasons, [expected]);
    // The medium has no more chunks of it.
    let mut next = baler::consume::<Order>(folder.reader()).unwrap();
    assert!(next.next().is_none());
}

#[test]
fn a_medium_can_be_the_quarantine() {
    let folder = Folder::new();
    send_orders(&folder.writer(), 2, 2);
    let mut config: ConsumerConfig = folder.reader().parse().unwrap();
    let aside = format!("file://{}", folder.path("aside"));
    config.quarantine = Some(aside.clone().into());
    config.max_attempts = 1;
    let refuse = |order: &Order| order.item.parse::<u64>().map(drop);
    let consumer = baler::consume::<Order>(config).unwrap();
    assert_eq!(consumer.for_each(refuse).unwrap().quarantined, 1);
    let mut aside = baler::consume::<baler::analysis::quarantine::Quarantined>(aside).unwrap();
    let batch = aside.next().unwrap().unwrap();
    let why = "x".parse::<u64>().unwrap_err().to_string();
    let reason = &batch.records().first().unwrap().reason;
    assert!(reason.ends_with(&why), "{reason}");
}

#[test]
fn without_a_quarantine_an_error_of_the_handler_ends_the_consumer_and_nothing_is_lost() {
    let folder = Folder::new();
    send_orders(&folder.writer(), 4, 2);
    let consumer = baler::consume::<Order>(folder.reader()).unwrap();
    let result = consumer.for_each(|order| -> Result<(), ParseIntError> {
        match order.id {
            2 => "x".parse::<u64>().map(drop),
            _ => Ok(()),
        }
    });
    let error = result.unwrap_err();
    assert!(matches!(&error, Error::Handler(cause) if cause.is::<ParseIntError>()));
    let mut next = baler::consume::<Order>(folder.reader()).unwrap();
    assert_eq!(ids(&first(&mut next)), [2, 3]);
}

/// A type that cannot be read from an order.
#[derive(Debug, Record)]
#[record(name = "shop.Order")]
struct Demanding {
    id: u64,
    customer: String,
}

#[test]
fn a_record_that_the_type_cannot_hold_is_an_error_with_its_place() {
    let folder = Folder::new();
    send_orders(&folder.writer(), 2, 2);
    let mut consumer = baler::consume::<Demanding>(folder.reader()).unwrap();
    let error = consumer.next().unwrap().unwrap_err();
    let Error::Read { position, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(*position, 0);
    let told = error.to_string();
    let expected = "record 0: shop.Order has no field customer, and there is no default for it";
    assert!(told.ends_with(expected), "{told}");
    drop(consumer);
    let mut fitting = baler::consume::<Order>(folder.reader()).unwrap();
    assert_eq!(first(&mut fitting).records(), [order(0), order(1)]);
}

#[test]
fn a_record_that_the_type_cannot_hold_goes_to_the_quarantine_if_there_is_one() {
    let folder = Folder::new();
    send_orders(&folder.writer(), 2, 2);
    let mut config: ConsumerConfig = folder.reader().parse().unwrap();
    config.quarantine = Some(folder.path("quarantine").into());
    let mut consumer = baler::consume::<Demanding>(config).unwrap();
    assert!(consumer.next().is_none());
    assert_eq!(consumer.close(PATIENCE).unwrap().quarantined, 1);
    let reasons = reasons(&folder.path("quarantine"));
    assert!(reasons[0].contains("has no field customer"), "{reasons:?}");
}

#[test]
fn a_consumer_is_stopped_from_elsewhere() {
    let folder = Folder::new();
    send_orders(&folder.writer(), 1, 1);
    let mut config: ConsumerConfig = folder.reader().parse().unwrap();
    config.follow = true;
    let mut consumer = baler::consume::<Order>(config).unwrap();
    first(&mut consumer).ack().unwrap();
    let stop = consumer.stop_handle();
    let stopper = std::thread::spawn(move || stop.stop());
    assert!(consumer.next().is_none());
    stopper.join().unwrap();
}
