use super::*;

const WATERMARK: Watermark = Watermark {
    position: Position {
        segment: 12,
        offset: 4_096,
    },
    next_chunk: 99,
};

#[test]
fn position_survives_its_text_and_an_altered_one_is_refused() {
    let text = WATERMARK.encode();
    assert!(text.starts_with(
        "{\"version\":1,\"segment\":12,\"offset\":4096,\"next_chunk\":99,\"crc32c\":"
    ));
    assert_eq!(Watermark::decode(&text), Some(WATERMARK));
    assert_eq!(Watermark::decode(&text.replace("99", "98")), None);
    assert_eq!(Watermark::decode(""), None);
}

#[test]
fn damaged_position_is_moved_aside_and_the_consumer_starts_over() {
    let folder = tempfile::tempdir().unwrap();
    let name: ConsumerName = "tail".parse().unwrap();
    Consumer::open(folder.path(), &name)
        .unwrap()
        .store(WATERMARK)
        .unwrap();
    let stored = watermarks(folder.path()).unwrap();
    assert!(stored.iter().all(|it| *it == WATERMARK), "{stored:?}");
    let path = folder.path().join("consumers/tail.json");
    fs::write(&path, "{\"version\":1,\"seg").unwrap();
    let consumer = Consumer::open(folder.path(), &name).unwrap();
    assert_eq!(consumer.stored(), None);
    assert!(consumer.damaged.is_some());
    assert!(folder.path().join("damaged/consumer-tail.bin").exists());
    drop(consumer);
    assert!(
        Consumer::open(folder.path(), &name)
            .unwrap()
            .damaged
            .is_none()
    );
}

#[test]
fn names_that_leave_the_folder_are_refused() {
    for name in ["", "..", "a/b", ".hidden", "ä"] {
        assert!(name.parse::<ConsumerName>().is_err(), "{name}");
    }
    assert!("billing-2.eu_west".parse::<ConsumerName>().is_ok());
}
