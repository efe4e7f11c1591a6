//! Changes of a topic are noticed once.

use std::collections::HashMap;

use rdkafka::statistics::{Partition, Topic};

use super::*;

fn counts(topic: &TopicWatch) -> Vec<u64> {
    let mut stats = WriterStats::default();
    topic.add_to(&mut stats);
    stats.counts.into_iter().map(|(_, count)| count).collect()
}

fn topic() -> TopicWatch {
    TopicWatch::new(&KafkaConfig::new("localhost:1", "chunks"))
}

fn statistics(partitions: &[(i32, bool)]) -> Statistics {
    let partition = |(partition, unknown): &(i32, bool)| {
        let of = Partition {
            partition: *partition,
            unknown: *unknown,
            ..Partition::default()
        };
        (*partition, of)
    };
    let topic = Topic {
        partitions: partitions.iter().map(partition).collect(),
        ..Topic::default()
    };
    Statistics {
        topics: HashMap::from([("chunks".to_owned(), topic)]),
        ..Statistics::default()
    }
}

#[test]
fn partitions_are_those_of_the_statistics_while_the_client_knows_the_topic() {
    let topic = topic();
    topic.set_partitions(2);
    topic.take_statistics(&Statistics::default());
    topic.take_statistics(&statistics(&[(-1, true)]));
    topic.take_statistics(&statistics(&[(0, false), (1, true)]));
    assert_eq!((topic.partitions(), counts(&topic)[2]), (2, 0));
    let four = [(-1, false), (0, false), (1, false), (2, false), (3, false)];
    for _ in 0..2 {
        topic.take_statistics(&statistics(&four));
        assert_eq!((topic.partitions(), counts(&topic)[2]), (4, 2));
    }
    // The topic was made anew with fewer.
    topic.take_statistics(&statistics(&[(0, false)]));
    assert_eq!((topic.partitions(), counts(&topic)[2]), (1, 2));
}

#[test]
fn lowered_limit_is_counted_once() {
    let topic = topic();
    topic.set_message_bytes(100_000);
    let settings = |bytes| TopicSettings {
        max_message_bytes: Some(bytes),
        cleanup_policy: None,
    };
    // The topic takes more than the writer sends.
    topic.take_settings(&settings(1_000_000));
    assert_eq!(counts(&topic)[1], 0);
    assert!(!topic.take_lower_limit());
    topic.take_settings(&settings(50_000));
    topic.take_settings(&settings(50_000));
    assert!(topic.take_lower_limit() && !topic.take_lower_limit());
    // The writer opens again because of it.
    topic.set_message_bytes(50_000);
    assert_eq!(counts(&topic)[1], 1);
    topic.set_message_bytes(100_000);
    topic.take_settings(&settings(20_000));
    assert_eq!(counts(&topic)[1], 2);
}

#[test]
fn topic_that_becomes_compacted_is_counted_once() {
    let topic = topic();
    let settings = |policy: &str| TopicSettings {
        max_message_bytes: None,
        cleanup_policy: Some(policy.to_owned()),
    };
    for (policy, count) in [
        ("delete", 0),
        ("compact", 1),
        ("compact,delete", 1),
        ("delete", 1),
        ("delete, compact", 2),
    ] {
        topic.take_settings(&settings(policy));
        assert_eq!(counts(&topic)[0], count, "{policy}");
    }
}
