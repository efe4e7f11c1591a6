use super::*;

fn config(text: &str) -> Result<KiekerLogConfig, UriError> {
    KiekerLogConfig::from_uri(Uri::parse(text).unwrap(), false)
}

#[test]
fn settings_come_from_the_uri() {
    let mut expected = KiekerLogConfig::new("a/log");
    assert_eq!(config("kieker-log:a/log").unwrap(), expected);
    expected.follow = true;
    expected.position_file = Some("a/log.position".into());
    assert_eq!(config("kieker-log:a/log?follow").unwrap(), expected);
    expected.position_file = Some("/p".into());
    expected.stops_at_bad_record = true;
    expected.schema = Some("own.irl".into());
    let all = config("kieker-log:a/log?follow&position=/p&on_bad_line=stop&schema=own.irl");
    assert_eq!(all.unwrap(), expected);
}

#[test]
fn wrong_settings_are_named() {
    let error = |text| config(text).unwrap_err().to_string();
    assert!(error("kieker-log:").contains("the folder of the log is missing"));
    assert!(error("kieker-log://host/a").contains("no host"));
    assert!(error("kieker-log:a?folow").contains("did you mean follow?"));
}
