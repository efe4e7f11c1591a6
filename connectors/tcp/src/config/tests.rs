use super::*;

fn config(text: &str) -> Result<TcpConfig, UriError> {
    TcpConfig::from_uri(Uri::parse(text).unwrap())
}

#[test]
fn settings_come_from_the_uri() {
    let config = config(
        "tcp://[::1]:9400?max_chunk=1MiB&window_chunks=8&window=2MiB&heartbeat=200ms\
             &connect_timeout=3s&memory=32MiB&max_connections=10&token_file=/run/token",
    )
    .unwrap();
    let mut expected = TcpConfig::new("::1", 9400);
    expected.max_chunk_bytes = NonZeroU32::new(1 << 20).unwrap();
    expected.window.chunks = NonZeroU32::new(8).unwrap();
    expected.window.bytes = NonZeroU32::new(2 << 20).unwrap();
    expected.heartbeat = Duration::from_millis(200);
    expected.connect_timeout = Duration::from_secs(3);
    expected.memory_bytes = NonZeroUsize::new(32 << 20).unwrap();
    expected.max_connections = NonZeroUsize::new(10).unwrap();
    expected.token_file = Some("/run/token".into());
    assert_eq!(config, expected);
    assert_eq!(config.to_string(), "tcp://[::1]:9400");
}

#[test]
fn what_cannot_be_is_named() {
    let error = |text| config(text).unwrap_err().to_string();
    assert_eq!(
        error("tcp://host"),
        "byte 10 of the URI: the port is missing"
    );
    assert_eq!(
        error("tcp://host:1?windw=1MB"),
        "byte 13 of the URI: the setting windw is unknown; did you mean window?"
    );
    assert!(error("tcp://host:1?window=0").contains("window is \"0\""));
    assert!(error("tcp://host:1?max_chunk=5GB").contains("max_chunk is"));
    assert!(error("tcp://host:1/path").contains("no path"));
    assert!(error("tcp://a:1,b:2").contains("one host"));
    #[cfg(not(feature = "tls"))]
    assert!(error("tcp+tls://host:1").contains("the feature tls"));
    #[cfg(feature = "tls")]
    assert!(error("tcp://host:1?cacertfile=a").contains("tcp+tls"));
}
