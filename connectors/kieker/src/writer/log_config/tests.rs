use super::*;

fn config(text: &str) -> Result<KiekerLogWriterConfig, UriError> {
    KiekerLogWriterConfig::from_uri(Uri::parse(text).unwrap())
}

#[test]
fn settings_come_from_the_uri() {
    let config = config(
        "kieker-log:/logs?format=binary&compression=xz&max_entries=7&max_bytes=1MiB&\
             set_timestamps=false&hostname=h&name=N&window_chunks=3&schema=x",
    );
    let mut expected = KiekerLogWriterConfig::new("/logs");
    expected.format = LogFormat::Binary;
    expected.compression = LogCompression::Xz;
    expected.max_entries = NonZeroUsize::new(7).unwrap();
    expected.max_bytes = NonZeroU64::new(1 << 20);
    expected.set_timestamps = false;
    expected.hostname = "h".into();
    expected.name = "N".into();
    expected.window.chunks = non_zero!(3);
    expected.schema = Some("x".into());
    assert_eq!(config.unwrap(), expected);
}

#[test]
fn wrong_settings_are_named() {
    let error = |text| config(text).unwrap_err().to_string();
    assert!(error("kieker-log:").contains("the folder for logs"));
    assert!(error("kieker-log:/x?format=txt").contains("text"));
    assert!(error("kieker-log:/x?name=a/b").contains("without /"));
}
