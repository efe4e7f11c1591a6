use super::*;

fn writer(text: &str) -> Result<FileWriterConfig, UriError> {
    FileWriterConfig::from_uri(Uri::parse(text)?)
}

fn reader(text: &str) -> Result<FileReaderConfig, UriError> {
    FileReaderConfig::from_uri(Uri::parse(text)?)
}

#[test]
fn path_alone_means_the_defaults() {
    assert_eq!(
        writer("file:///a/b%20c"),
        Ok(FileWriterConfig::new("/a/b c"))
    );
    assert_eq!(
        reader("file:relative"),
        Ok(FileReaderConfig::new("relative"))
    );
}

#[test]
fn settings_of_the_writer_are_taken() {
    let config = writer(
        "file:///f?segment_bytes=1MiB&segment_age=5m&full=drop-oldest\
             &max_total_bytes=10MiB&window_chunks=4",
    )
    .unwrap();
    assert_eq!(config.segment_bytes.get(), 1 << 20);
    assert_eq!(config.segment_age, Duration::from_secs(300));
    assert_eq!(config.full, FullPolicy::DropOldest);
    assert_eq!(config.max_total_bytes.map(NonZeroU64::get), Some(10 << 20));
    assert_eq!(config.window_chunks.get(), 4);
    assert_eq!(
        writer("file:///f?fsync=none").unwrap().sync,
        SyncPolicy::None
    );
}

#[test]
fn settings_of_the_reader_are_taken() {
    let uri = "file:///f?from=7:4096&follow&consumer=billing&keep=consumed";
    let config = reader(uri).unwrap();
    assert_eq!(config.keep, Keep::Consumed);
    let position = Position {
        segment: 7,
        offset: 4_096,
    };
    assert_eq!(config.from, Start::Position(position));
    assert!(config.follow);
    assert_eq!(config.consumer.unwrap().as_str(), "billing");
    assert_eq!(reader("file:///f?from=end").unwrap().from, Start::End);
}

#[test]
fn wrong_settings_are_named() {
    for (uri, named) in [
        ("file:", "a folder"),
        ("file://host/folder", "host"),
        ("file:///f?fsync=sometimes", "fsync"),
        ("file:///f?segment_byte=1MiB", "segment_bytes"),
        ("file:///f?max_total_bytes=0", "max_total_bytes"),
    ] {
        let error = writer(uri).unwrap_err().to_string();
        assert!(error.contains(named), "{uri}: {error}");
    }
    for (uri, named) in [
        ("file:///f?from=yesterday", "from"),
        ("file:///f?from=12", "from"),
        ("file:///f?consumer=../x", "consumer"),
        ("file:///f?folow=true", "follow"),
    ] {
        let error = reader(uri).unwrap_err().to_string();
        assert!(error.contains(named), "{uri}: {error}");
    }
}
