//! The same against a cluster named by `KAFKA_BOOTSTRAP`, which creates topics by itself.

use std::slice;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use baler_connector_kafka::{KafkaConfig, KafkaReader, KafkaWriter};
use baler_connector_testkit::{ChunkSource, Pump, Tap, drive};

/// A topic and group of their own.
fn config() -> KafkaConfig {
    let bootstrap = std::env::var("KAFKA_BOOTSTRAP").expect("KAFKA_BOOTSTRAP is host:port");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let name = format!("baler-test-{}", now.as_nanos());
    KafkaConfig::new(&bootstrap, name.as_str())
        .client_settings(&[("group.id", &name)])
        .unwrap()
}

#[test]
#[ignore = "needs KAFKA_BOOTSTRAP"]
fn offsets_survive_the_restart_of_a_reader() {
    let config = config();
    let mut pump = Pump::open(Box::new(KafkaWriter::new(config.clone())));
    let mut source = ChunkSource::new(1);
    let mut tap = Tap::new(Box::new(KafkaReader::open(config.clone()).unwrap()));
    for round in 0..3 {
        pump.push(source.take(500));
        drive(
            "all arrives",
            slice::from_mut(&mut pump),
            slice::from_mut(&mut tap),
            |pumps, taps| pumps[0].is_done() && taps[0].distinct() == 500,
        );
        assert_eq!(
            tap.received().len(),
            500,
            "round {round}: nothing comes twice"
        );
        tap.assert_ordered();
        let (_, report) = tap.close(Instant::now() + Duration::from_secs(10));
        assert_eq!((report.unsettled, report.error.is_none()), (0, true));
        tap = Tap::new(Box::new(KafkaReader::open(config.clone()).unwrap()));
    }
    assert_eq!((pump.confirmed(), pump.breaks()), (1500, 0));
}
