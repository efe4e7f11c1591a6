//! Records come back as values, with their identities.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use baler::analysis::Stop;
use baler::analysis::filters::Count;
use baler::{ConsumerConfig, Record, RecordIdentity, Records};

use crate::support::{Click, Folder, Order, PATIENCE, controller, order, send_orders};

#[derive(Debug, PartialEq, Records)]
enum Shop {
    Order(Order),
    Click(Click),
}

#[derive(Record)]
struct Noise {
    level: i8,
}

/// Orders and clicks in turn, and something else among them.
fn send_mixture(uri: &str) {
    let controller = controller(uri, 10);
    for number in 0..30 {
        assert!(controller.emit(&order(number.into())));
        assert!(controller.emit(&Click { page: number }));
        assert!(controller.emit(&Noise { level: 1 }));
    }
    assert_eq!(controller.shutdown(PATIENCE).delivered(), 90);
}

#[test]
fn several_types_come_in_order_and_others_are_counted() {
    let folder = Folder::new();
    send_mixture(&folder.writer());
    let mut consumer = baler::consume::<Shop>(folder.reader()).unwrap();
    let mut read = Vec::new();
    for batch in &mut consumer {
        let mut batch = batch.unwrap();
        assert_eq!(batch.len(), batch.records().len());
        assert!(!batch.is_empty());
        read.append(&mut batch.take_records());
        assert!(batch.is_empty());
        batch.ack().unwrap();
    }
    let sent = (0..30).flat_map(|number: u32| {
        let order = Shop::Order(order(number.into()));
        [order, Shop::Click(Click { page: number })]
    });
    assert!(read.into_iter().eq(sent));
    assert_eq!(consumer.skipped(), 30);
    let report = consumer.close(PATIENCE).unwrap();
    // The last chunk marks the end.
    assert_eq!((report.acknowledged, report.chunks), (10, 10));
}

#[test]
fn chunks_of_other_types_alone_are_acknowledged_and_counted() {
    let folder = Folder::new();
    send_orders(&folder.writer(), 20, 5);
    let mut consumer = baler::consume::<Click>(folder.reader()).unwrap();
    assert!(consumer.next().is_none());
    assert_eq!(consumer.skipped(), 20);
    // This includes the last chunk, which marks the end.
    assert_eq!(consumer.close(PATIENCE).unwrap().acknowledged, 5);
}

#[test]
fn a_source_without_end_ends_by_the_idle_timeout() {
    let folder = Folder::new();
    send_orders(&folder.writer(), 4, 2);
    let mut config: ConsumerConfig = folder.reader().parse().unwrap();
    config.follow = true;
    config.idle_timeout = Some(Duration::from_millis(50));
    let mut source = baler::source(config.clone()).unwrap();
    let (mut count, counts) = Count::new();
    source.run(&mut count, Stop::default(), |_| true).unwrap();
    assert_eq!(counts.records(), 4);
    source.close(Instant::now() + PATIENCE).unwrap();
    assert!(baler::consume::<Order>(config).unwrap().next().is_none());
}

#[test]
fn each_record_has_an_identity_and_each_batch_a_position() {
    let folder = Folder::new();
    send_mixture(&folder.writer());
    let mut identities = BTreeSet::<RecordIdentity>::new();
    let mut places = BTreeSet::new();
    for batch in baler::consume::<Order>(folder.reader()).unwrap() {
        let batch = batch.unwrap();
        let origin = batch.origin().unwrap();
        assert!(places.insert((origin.lane.clone(), origin.position)));
        assert!(!batch.is_redelivered());
        for (identity, order) in batch.identified() {
            let identity = identity.unwrap();
            assert_eq!(Some(identity.chunk), batch.identity());
            // Every third record, ten of all types in a chunk.
            let number = identity.chunk.sequence * 10 + u64::from(identity.position);
            assert_eq!(number, order.id * 3);
            assert!(identities.insert(identity));
        }
        batch.ack().unwrap();
    }
    assert_eq!(identities.len(), 30);
    let shown = identities.first().unwrap().to_string();
    assert_eq!(shown.split('/').count(), 5, "{shown}");
}

#[test]
fn another_version_of_a_type_reads_by_field_name() {
    #[derive(Record)]
    #[record(name = "shop.Order")]
    struct Newer {
        #[record(alias = "item")]
        article: String,
        #[record(default = 1)]
        count: u32,
    }

    let folder = Folder::new();
    send_orders(&folder.writer(), 3, 3);
    let report = baler::consume::<Newer>(folder.reader()).unwrap();
    let mut articles = Vec::new();
    let taken = report.for_each(|order| {
        articles.push((order.article.clone(), order.count));
        Ok::<_, String>(())
    });
    assert_eq!(taken.unwrap().records, 3);
    let expected = [0, 1, 2].map(|id| (order(id).item, 1));
    assert_eq!(articles, expected);
}

#[cfg(feature = "serde")]
#[test]
fn records_known_at_run_time_and_those_of_serde_are_emitted_too() {
    use baler::record::serde::{SerdeType, from_record};

    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Paid {
        id: u64,
        by: Option<String>,
    }

    let folder = Folder::new();
    let controller = controller(&folder.writer(), 10);
    let paid = Paid {
        id: 7,
        by: Some("card".into()),
    };
    let kind = SerdeType::<Paid>::trace("shop.Paid").unwrap();
    let dynamic = kind.to_record(Some(5), &paid).unwrap();
    assert!(controller.emit_as_is(dynamic.as_ref()));
    assert!(controller.emit(&order(0)));
    assert_eq!(controller.shutdown(PATIENCE).delivered(), 2);

    let batch = baler::consume::<Order>(folder.reader()).unwrap().next();
    let batch = batch.unwrap().unwrap();
    let (_, first) = batch.parcel().unwrap().records().next().unwrap();
    assert_eq!(first.timestamp(), Some(5));
    assert_eq!(from_record::<Paid>(first.fields()).unwrap(), paid);
}
