//! Partitions of lanes, also when partitions are added.

use super::*;

/// The values of Kafka's own test of `Utils.murmur2`.
#[test]
fn hash_is_that_of_kafka() {
    for (text, hash) in [
        ("21", -973_932_308),
        ("foobar", -790_332_482),
        ("a-little-bit-long-string", -985_981_536),
        ("a-little-bit-longer-string", -1_486_304_829),
        (
            "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
            -58_897_971,
        ),
        ("abc", 479_470_107),
    ] {
        assert_eq!(
            i32::from_ne_bytes(murmur2(text.as_bytes()).to_ne_bytes()),
            hash,
            "{text}"
        );
    }
}

fn partitions(by: PartitionBy) -> Partitions {
    let mut config = KafkaConfig::new("localhost:1", "chunks");
    config.partition_by = by;
    let mut partitions = Partitions::new(&config);
    partitions.open(2);
    partitions
}

fn chosen(partitions: &mut Partitions, prefix: &str, count: i32) -> Vec<i32> {
    let keys = (0..64).map(|lane| (lane, format!("{prefix}/{lane}")));
    keys.map(|(lane, key)| partitions.choose(lane, &key, count).unwrap())
        .collect()
}

#[test]
fn lane_stays_on_its_partition_and_new_lanes_use_partitions_that_were_added() {
    for by in [PartitionBy::Lane, PartitionBy::Producer] {
        let mut partitions = partitions(by);
        let before = chosen(&mut partitions, "old", 2);
        assert!(before.iter().all(|partition| *partition < 2));
        let new = chosen(&mut partitions, "new", 8);
        assert_eq!(chosen(&mut partitions, "old", 8), before, "{by:?}");
        assert!((0..8).all(|partition| new.contains(&partition)), "{new:?}");
        // Another connection to the same topic.
        partitions.open(8);
        assert_eq!(chosen(&mut partitions, "old", 8), before, "{by:?}");
        // A new topic with fewer partitions.
        partitions.open(1);
        assert_eq!(chosen(&mut partitions, "new", 1), [0; 64], "{by:?}");
    }
}

#[test]
fn partitions_in_turn_use_new_ones_and_traces_do_not() {
    let mut in_turn = partitions(PartitionBy::RoundRobin);
    chosen(&mut in_turn, "old", 2);
    let new = chosen(&mut in_turn, "old", 4);
    assert!((0..4).all(|partition| new.contains(&partition)), "{new:?}");
    let mut by_trace = partitions(PartitionBy::Trace);
    let before = chosen(&mut by_trace, "old", 2);
    assert_eq!(chosen(&mut by_trace, "old", 4), before);
    by_trace.open(4);
    assert_ne!(chosen(&mut by_trace, "old", 4), before);
}

#[test]
fn number_of_remembered_lanes_is_bounded() {
    let mut partitions = partitions(PartitionBy::Lane);
    for lane in 0..3 * LANES {
        partitions.choose(0, &lane.to_string(), 2);
        // This one sends all the time.
        partitions.choose(0, "busy", 2);
    }
    let kept = partitions.recent.len() + partitions.older.len();
    assert!(kept <= 2 * LANES, "{kept}");
    let busy = partitions
        .recent
        .get("busy")
        .or_else(|| partitions.older.get("busy"));
    assert!(busy.is_some());
}

#[test]
fn another_partitioner_chooses_instead() {
    let settings = [("partitioner", "consistent")];
    let config = KafkaConfig::new("localhost:1", "chunks");
    let mut config = config.client_settings(&settings).unwrap();
    assert_eq!(Partitions::new(&config).choose(0, "key", 4), None);
    config.partition_by = PartitionBy::RoundRobin;
    assert_eq!(Partitions::new(&config).choose(0, "key", 4), Some(1));
}
