use super::*;

fn config(text: &str) -> Result<LinesConfig, String> {
    let uri = Uri::parse(text).map_err(|error| error.to_string())?;
    LinesConfig::from_uri(uri, false).map_err(|error| error.to_string())
}

#[test]
fn settings_are_read() {
    let mut expected = LinesConfig::new("log");
    expected.format = Format::Json {
        type_field: "kind".into(),
    };
    expected.follow = true;
    expected.origin = true;
    expected.max_line_bytes = NonZeroUsize::new(2_000).unwrap();
    expected.position_file = Some("log.position".into());
    let text = "jsonl:log?type=kind&follow&origin&max_line_bytes=2kB";
    assert_eq!(config(text).unwrap(), expected);
    let text = config("text:/var/log/*.log?follow&type=syslog").unwrap();
    assert_eq!(
        text.format,
        Format::Text {
            type_name: "syslog".into()
        }
    );
    assert_eq!(text.position_file, Some("/var/log/_.log.position".into()));
    assert_eq!(text.endpoint(), "text:/var/log/*.log");
    let uri = Uri::parse("jsonl:log").unwrap();
    let followed = LinesConfig::from_uri(uri, true).unwrap();
    assert_eq!((followed.follow, followed.position_file), (true, None));
}

#[test]
fn wrong_settings_are_named() {
    for (text, part) in [
        ("jsonl:", "the file or folder with the lines"),
        ("jsonl:-?follow", "standard input has no position"),
        ("jsonl:-?position=p", "standard input has no position"),
        ("jsonl:log?folow", "follow"),
        ("text:log?type=", "type is empty"),
        ("jsonl://host/log", "no host"),
    ] {
        let error = config(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
}
