//! Accepted URIs, refused URIs, and secrets that never show.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn parsed(text: &str) -> Uri {
    Uri::parse(text).unwrap()
}

fn host(name: &str, port: Option<u16>) -> Host {
    Host {
        name: name.into(),
        port,
    }
}

#[test]
fn every_medium_of_the_design_is_understood() {
    let uri = parsed("tcp://127.0.0.1:9400");
    assert_eq!(uri.host().unwrap(), &host("127.0.0.1", Some(9400)));
    let uri = parsed("kafka://a:1,b,[::1]:3/topic?acks=all");
    assert_eq!(
        uri.hosts(),
        [host("a", Some(1)), host("b", None), host("::1", Some(3))]
    );
    assert_eq!(uri.path(), "/topic");
    let uri = parsed("file:///var/log/baler");
    assert_eq!((uri.path(), uri.hosts().len()), ("/var/log/baler", 0));
    assert!(uri.has_authority());
    let uri = parsed("kieker-log:some/folder");
    assert_eq!((uri.scheme(), uri.path()), ("kieker-log", "some/folder"));
    assert!(!uri.has_authority());
    let uri = parsed("null:");
    assert_eq!((uri.scheme(), uri.path()), ("null", ""));
    let uri = parsed("amqps://us%40er:p%2Fw@host/vh%20ost");
    assert_eq!(
        (uri.user(), uri.password(), uri.path()),
        (Some("us@er"), Some("p/w"), "/vh ost")
    );
}

#[test]
fn settings_are_typed() {
    let mut uri = parsed("x:?a=1.5s&b=64KiB&c=1MB&d=off&e&f=17&g=all&h=te%26xt&i=2m&j=200ms&k=0");
    assert_eq!(
        uri.take_duration("a").unwrap(),
        Some(Duration::from_millis(1500))
    );
    assert_eq!(uri.take_bytes("b").unwrap(), Some(65536));
    assert_eq!(uri.take_bytes("c").unwrap(), Some(1_000_000));
    assert_eq!(uri.take_bool("d").unwrap(), Some(false));
    assert_eq!(uri.take_bool("e").unwrap(), Some(true));
    assert_eq!(uri.take_number::<u8>("f").unwrap(), Some(17));
    assert_eq!(
        uri.take_choice("g", &[("all", 1), ("none", 2)]).unwrap(),
        Some(1)
    );
    assert_eq!(uri.take_text("h").as_deref(), Some("te&xt"));
    assert_eq!(
        uri.take_duration("i").unwrap(),
        Some(Duration::from_secs(120))
    );
    assert_eq!(
        uri.take_duration("j").unwrap(),
        Some(Duration::from_millis(200))
    );
    assert_eq!(uri.take_duration("k").unwrap(), Some(Duration::ZERO));
    assert_eq!(uri.take_duration("absent").unwrap(), None);
    uri.finish().unwrap();
}

#[test]
fn unknown_setting_is_named_with_the_nearest() {
    let mut uri = parsed("file:///d?segment_agee=5s");
    uri.take_bytes("segment_bytes").unwrap();
    uri.take_duration("segment_age").unwrap();
    let error = uri.finish().unwrap_err();
    assert_eq!(
        error.to_string(),
        "byte 10 of the URI: the setting segment_agee is unknown; did you mean segment_age?"
    );
    let error = parsed("null:?zzzzzz=1").finish().unwrap_err();
    assert_eq!(
        error.to_string(),
        "byte 6 of the URI: the setting zzzzzz is unknown"
    );
}

#[test]
fn setting_given_twice_is_named_with_both_places() {
    let error = Uri::parse("null:?a=1&b=2&a=3").unwrap_err();
    assert_eq!(
        error.to_string(),
        "byte 14 of the URI: a is given a second time; it was already given at byte 6"
    );
}

#[test]
fn wrong_values_are_named_with_their_place() {
    let value = |text: &str| parsed(text).take_duration("t").unwrap_err().to_string();
    assert_eq!(
        value("x:?t=5"),
        "byte 5 of the URI: t is \"5\", not a time such as 200ms or 5s"
    );
    for wrong in [
        "5 s",
        "s",
        "-1s",
        "1..5s",
        "1.s",
        ".5s",
        "5S",
        "99999999999999999999d",
        "600000d",
    ] {
        let text = format!("x:?t={}", wrong.replace(' ', "%20"));
        assert!(parsed(&text).take_duration("t").is_err(), "{wrong}");
    }
    for wrong in [
        "5Q",
        "KiB",
        "-1",
        "99999999999999999999",
        "18446744073709551616",
        "1e3",
    ] {
        assert!(
            parsed(&format!("x:?b={wrong}")).take_bytes("b").is_err(),
            "{wrong}"
        );
    }
    assert!(parsed("x:?n=256").take_number::<u8>("n").is_err());
    let error = parsed("x:?c=nome")
        .take_choice("c", &[("all", 1), ("none", 2)])
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "byte 5 of the URI: c is nome, not one of all, none; did you mean none?"
    );
}

#[test]
fn malformed_texts_say_where() {
    let table = [
        ("", 0, parse::NO_SCHEME),
        ("no-colon", 0, parse::NO_SCHEME),
        ("1tcp://h", 0, parse::NO_SCHEME),
        ("://h", 0, parse::NO_SCHEME),
        ("tcp://h:70000", 8, parse::BAD_PORT),
        ("tcp://h:+1", 8, parse::BAD_PORT),
        ("tcp://h:", 8, parse::BAD_PORT),
        ("tcp://:1", 6, parse::BAD_HOST),
        ("tcp://a,,b", 8, parse::BAD_HOST),
        ("tcp://u@", 8, parse::BAD_HOST),
        ("tcp://[::1", 6, parse::BAD_HOST),
        ("tcp://[::1]x", 11, parse::BAD_HOST),
        ("tcp://[nonsense]:1", 7, parse::BAD_HOST),
        ("file:///a%2", 9, parse::BAD_PERCENT),
        ("file:///a%zz", 9, parse::BAD_PERCENT),
        ("file:///a%ff", 7, parse::BAD_PERCENT),
    ];
    for (text, offset, message) in table {
        let error = Uri::parse(text).unwrap_err();
        assert_eq!(error, UriError::at(offset, message), "{text}");
    }
    let error = Uri::parse("file:///a#b").unwrap_err();
    assert_eq!(
        error.to_string(),
        "byte 9 of the URI: '#' cannot stand here; write it as %23"
    );
    let error = parsed("tcp://a,b").host().unwrap_err();
    assert_eq!(
        error.to_string(),
        "byte 4 of the URI: exactly one host is needed here, 2 are given"
    );
    let error = parsed("tcp://a:1/topic").no_path().unwrap_err();
    assert_eq!(
        error.to_string(),
        "byte 9 of the URI: no path can stand here"
    );
}

#[test]
fn what_is_missing_is_told_with_the_place_where_it_should_stand() {
    let uri = parsed("x://user:%40@host/p%20/?a=1");
    assert_eq!(uri.missing_after_hosts("it").offset, Some(17));
    let error = uri.missing_in_path("it");
    assert_eq!(error.to_string(), "byte 23 of the URI: it is missing");
    assert_eq!(parsed("x:").missing_in_path("it").offset, Some(2));
    assert_eq!(UriError::missing("it").to_string(), "it is missing");
}

#[test]
fn secrets_never_show() {
    let uri = parsed("kafka://me:hunter2@h:1/t?sasl.password=hunter2&acks=all");
    assert_eq!(
        uri.to_string(),
        "kafka://me:***@h:1/t?sasl.password=***&acks=all"
    );
    assert!(!format!("{uri:?}").contains("hunter2"));
    let error = parsed("x:?token=hunter2").take_bool("token").unwrap_err();
    assert!(!error.to_string().contains("hunter2"));
    let error = Uri::parse("tcp://me:hunter2").unwrap_err();
    assert!(!error.to_string().contains("hunter2"));
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused_inside_it(text in ".{0,80}") {
        if let Err(error) = Uri::parse(&text) {
            prop_assert!(error.offset.is_some_and(|offset| offset <= text.len()));
        }
    }

    #[test]
    fn any_query_is_taken_apart_inside_it(text in "[a-c=&%0-9.]{0,40}") {
        let whole = format!("x:?{text}");
        if let Ok(mut uri) = Uri::parse(&whole) {
            if let Err(error) = uri.take_duration("a") {
                prop_assert!(error.offset.is_some_and(|offset| offset <= whole.len()));
            }
            uri.take_rest();
            prop_assert!(uri.finish().is_ok());
        }
    }
}

#[test]
fn secrets_are_not_shown_however_they_are_misspelt() {
    for text in [
        "amqp://h/?password=hush",
        "amqp://h/?pasword=hush",
        "kafka://h/t?sasl.pasword=hush",
        "kafka://h/t?sasl.jaas.config=hush",
        "kafka://h/t?oauth_tokne=hush",
        "kafka://h/t?ssl.key.pass-word=hush",
        "otlp://h:1?headers=api-key=hush",
        "otlp://h:1?haeders=api-key=hush",
        "amqp:/guest:hush@h?queue=q",
        "amqp:guest:hush@h?queue=q",
        "amqp://guest:hush@h?queue=q",
    ] {
        let shown = Uri::parse(text).unwrap().to_string();
        assert!(shown.contains("***") && !shown.contains("hush"), "{shown}");
    }
    for text in [
        "file:///a:b@c",
        "kafka://h/topic?partitions=3&key=producer&prefetch=4",
        "amqp://h/?queue=q&routing_key=k&position_file=p",
    ] {
        assert_eq!(Uri::parse(text).unwrap().to_string(), text);
    }
}
