//! A group whose position the cluster does not have any more.

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::{Offset, TopicPartitionList};

use super::*;
use baler_common::transport::{ChunkIdentity, Received, Verdict};
use baler_connector_testkit::read_label;

/// A topic of one partition, and a group of its own.
fn topic() -> (String, KafkaConfig) {
    let name = name();
    create(&NewTopic::new(&name, 1, TopicReplication::Fixed(1)));
    let config = KafkaConfig::new(&bootstrap(), name.as_str())
        .client_settings(&[("group.id", &name), ("session.timeout.ms", "6000")])
        .unwrap();
    (name, config)
}

fn write(config: &KafkaConfig, source: &mut ChunkSource, chunks: usize) {
    let mut pump = Pump::open(Box::new(KafkaWriter::new(config.clone())));
    pump.push(source.take(chunks));
    within_patience("they are confirmed", || {
        pump.step();
        pump.is_done().then_some(())
    });
}

/// What a reader says until it is at its end.
#[derive(Debug, Default)]
struct Read {
    sequences: Vec<u64>,
    settled_before: Vec<ChunkIdentity>,
    told: Vec<String>,
}

impl Read {
    /// Receives and acknowledges until the end, and until `enough`.
    fn on(&mut self, reader: &mut dyn ChunkReader, enough: impl Fn(&Self) -> bool) {
        within_patience("the end", || {
            match reader.receive(Instant::now() + Duration::from_millis(50)) {
                Ok(Received::Chunk(delivery)) => {
                    self.sequences.push(read_label(&delivery.bytes).sequence);
                    reader.settle(delivery.token, Verdict::Ack).unwrap();
                }
                Ok(Received::Assigned { settled, .. }) => self.settled_before.extend(settled),
                Ok(Received::Idle) => {
                    return (reader.waits_for().is_none() && enough(self)).then_some(());
                }
                Ok(_) => {}
                Err(error) => self.told.push(error.to_string()),
            }
            None
        });
    }
}

fn open(config: &KafkaConfig) -> Box<dyn ChunkReader> {
    let mut reader = Box::new(KafkaReader::open(config.clone()).unwrap());
    reader.set_demand(100);
    reader
}

fn read(config: &KafkaConfig) -> (Read, baler_common::transport::ReaderStats) {
    let (mut reader, mut read) = (open(config), Read::default());
    read.on(&mut *reader, |_| true);
    let stats = reader.stats();
    let report = reader.close(soon());
    assert!(report.error.is_none(), "{report:?}");
    (read, stats)
}

#[test]
#[ignore = "needs KAFKA_BOOTSTRAP"]
fn retention_past_a_stopped_group_is_told() {
    for (kept, reset, lost) in [
        (10, "earliest", 50),
        (0, "earliest", 60),
        (10, "latest", 60),
    ] {
        let (topic, config) = topic();
        let mut source = ChunkSource::new(1);
        write(&config, &mut source, 40);
        assert_eq!(read(&config).0.sequences.len(), 40);
        write(&config, &mut source, 60);
        let mut before = TopicPartitionList::new();
        let offset = Offset::Offset(100 - kept);
        before.add_partition_offset(&topic, 0, offset).unwrap();
        answer(administrator().delete_records(&before, &AdminOptions::new()));
        let config = config
            .client_settings(&[("auto.offset.reset", reset)])
            .unwrap();
        let (read, stats) = read(&config);
        let last: Vec<_> = read.settled_before.iter().map(|it| it.sequence).collect();
        assert_eq!(last, [39], "the reader sees the gap");
        let to = 40 + lost;
        let expected = format!("partition 0: the offsets from 40 to before {to} were removed");
        assert!(read.told.concat().contains(&expected), "{:?}", read.told);
        assert_eq!((stats.removals, stats.removed), (1, lost));
        let read = u64::try_from(read.sequences.len()).unwrap();
        assert_eq!(read, 60 - lost);
    }
}

#[test]
#[ignore = "needs KAFKA_BOOTSTRAP"]
fn a_position_beyond_the_end_is_told_once_and_the_group_goes_back() {
    let (topic, config) = topic();
    write(&config, &mut ChunkSource::new(1), 40);
    let mut positions = TopicPartitionList::new();
    let offset = Offset::Offset(500);
    positions.add_partition_offset(&topic, 0, offset).unwrap();
    let client: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap())
        .set("group.id", &topic)
        .create()
        .unwrap();
    client.commit(&positions, CommitMode::Sync).unwrap();
    drop(client);
    let (first, stats) = read(&config);
    assert_eq!((first.sequences.len(), stats.removals), (40, 1));
    let told = first.told.concat();
    assert!(told.contains("offset 0, and 500 was to be next"), "{told}");
    let (second, stats) = read(&config);
    assert_eq!((second.sequences.len(), stats.removals), (0, 0));
}

#[test]
#[ignore = "needs KAFKA_BOOTSTRAP"]
fn a_topic_that_is_remade_under_a_reader_is_told_and_read_once() {
    let (topic, config) = topic();
    let mut source = ChunkSource::new(1);
    write(&config, &mut source, 40);
    let (mut reader, mut read_first) = (open(&config), Read::default());
    read_first.on(&mut *reader, |_| true);
    assert_eq!(read_first.sequences.len(), 40);
    for deleted in answer(administrator().delete_topics(&[&topic], &AdminOptions::new())) {
        deleted.unwrap();
    }
    let administrator = administrator();
    within_patience("the name is free", || {
        let new = NewTopic::new(&topic, 1, TopicReplication::Fixed(1));
        let created = administrator.create_topics([&new], &AdminOptions::new());
        answer(created).remove(0).ok()
    });
    write(&config, &mut source, 5);
    let mut anew = Read::default();
    anew.on(&mut *reader, |read| read.sequences.len() >= 5);
    assert_eq!(anew.sequences, [40, 41, 42, 43, 44]);
    let told = anew.told.concat();
    assert!(told.contains("offset 0, and 40 was to be next"), "{told}");
    assert_eq!(reader.stats().removals, 1);
    let report = reader.close(soon());
    assert!(report.error.is_none(), "{report:?}");
    let (again, stats) = read(&config);
    assert_eq!((again.sequences.len(), stats.removals), (0, 0));
}
