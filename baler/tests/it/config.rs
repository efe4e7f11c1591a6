//! Settings: from a URI, and from a file.

use baler::{ConsumerConfig, Controller, ControllerConfig, Error};

use crate::support::Order;

#[test]
fn a_wrong_uri_is_an_error_that_says_where() {
    let told = |error: Error| error.to_string();
    let error = told(Controller::to("orders").unwrap_err());
    assert!(error.contains("byte"), "{error}");
    let error = told(Controller::to("fiel:/tmp/x").unwrap_err());
    assert!(error.contains("did you mean file:?"), "{error}");
    let error = told(baler::consume::<Order>("file:/tmp/x?folow=true").unwrap_err());
    assert!(
        error.contains("folow") && error.contains("follow"),
        "{error}"
    );
    let secret = "tcp://me:hush@host:1?token=hush&windw=3";
    let error = Controller::to(secret).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hush"));
    let config: ControllerConfig = secret.parse().unwrap();
    assert!(!format!("{config:?}").contains("hush"));
}

#[cfg(not(feature = "kafka"))]
#[test]
fn a_missing_feature_is_named() {
    let error = Controller::to("kafka://localhost/orders").unwrap_err();
    assert!(
        error
            .to_string()
            .contains("cargo add baler --features kafka")
    );
}

#[cfg(feature = "serde")]
#[test]
fn both_sides_are_configured_from_a_file() {
    use std::time::Duration;

    #[derive(Debug, serde::Deserialize)]
    struct Settings {
        out: ControllerConfig,
        back: ConsumerConfig,
    }

    let text = r#"
        [out]
        uri = "null:"
        application = "shop"
        chunk_records = 64
        wait_time = "200ms"

        [back]
        uri = "null:"
        quarantine = "poison"
        idle_timeout = "2s"
    "#;
    let settings: Settings = toml::from_str(text).unwrap();
    assert_eq!(settings.out.wait_time, Some(Duration::from_millis(200)));
    assert_eq!(settings.out.chunk_records, Some(64));
    assert_eq!(settings.back.idle_timeout, Some(Duration::from_secs(2)));
    assert_eq!((settings.back.max_attempts, settings.back.demand), (5, 64));
    let controller = Controller::to(settings.out).unwrap();
    assert_eq!(controller.stats().chunk_records, 64);
    for wrong in [
        "uri = 'orders'",
        "uri = 'null:'\nwait_time = '3 weeks'",
        "uri = 'null:'\nx = 1",
    ] {
        assert!(
            toml::from_str::<ControllerConfig>(wrong).is_err(),
            "{wrong}"
        );
    }
}
