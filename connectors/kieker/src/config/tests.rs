use super::*;

fn config(text: &str) -> Result<KiekerTcpConfig, UriError> {
    KiekerTcpConfig::from_uri(Uri::parse(text).unwrap())
}

#[test]
fn settings_come_from_the_uri() {
    let config = config(
        "kieker+tcp://[::1]:9876?registry_port=9877&memory=1MiB&max_connections=7&max_age=1s\
             &trace_ids=unique&schema=own.irl",
    )
    .unwrap();
    let mut expected = KiekerTcpConfig::new("::1", 9876);
    expected.registry_port = Some(9877);
    expected.memory_bytes = NonZeroUsize::new(1 << 20).unwrap();
    expected.max_connections = NonZeroUsize::new(7).unwrap();
    expected.max_age = Duration::from_secs(1);
    expected.unique_trace_ids = true;
    expected.schema = Some("own.irl".into());
    assert_eq!(config, expected);
    assert_eq!(config.to_string(), "kieker+tcp://[::1]:9876");
}

#[test]
fn wrong_settings_are_named() {
    let error = |text| config(text).unwrap_err().to_string();
    assert!(error("kieker+tcp://host").contains("the port is missing"));
    assert!(error("kieker+tcp://host:1/path").contains("no path"));
    assert!(error("kieker+tcp://host:1?memroy=1MB").contains("did you mean memory?"));
}
