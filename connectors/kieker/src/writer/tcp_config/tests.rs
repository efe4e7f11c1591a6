use super::*;

fn config(text: &str) -> Result<KiekerTcpWriterConfig, UriError> {
    KiekerTcpWriterConfig::from_uri(Uri::parse(text).unwrap())
}

#[test]
fn settings_come_from_the_uri() {
    let config =
        config("kieker+tcp://[::1]:9876?connect_timeout=1s&window_chunks=3&window=1KiB&schema=x");
    let mut expected = KiekerTcpWriterConfig::new("::1", 9876);
    expected.connect_timeout = Duration::from_secs(1);
    expected.window.chunks = non_zero!(3);
    expected.window.bytes = non_zero!(1 << 10);
    expected.schema = Some("x".into());
    assert_eq!(config.unwrap(), expected);
}

#[test]
fn wrong_settings_are_named() {
    let error = |text| config(text).unwrap_err().to_string();
    assert!(error("kieker+tcp://host").contains("the port is missing"));
    assert!(error("kieker+tcp://host:1?windw=1").contains("did you mean window?"));
}
