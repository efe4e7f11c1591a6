use super::*;

const NULL: Medium = Medium {
    schemes: &["null", "jsonl", "kieker-log"],
    writer: |_| Err(UriError::refused("opened")),
    receiver: |_, _| Err(UriError::refused("opened")),
    browser: None,
};

#[test]
fn absent_scheme_says_why_and_an_unknown_one_names_those_that_are_there() {
    let why = "needs the feature kafka, which this build lacks: --features kafka";
    let media = Media::default()
        .with(NULL)
        .without(&["kafka", "kafka+mock"], why);
    let error = |text: &str| {
        let uri = Uri::parse(text).unwrap();
        media
            .receiver(uri, false)
            .map(drop)
            .unwrap_err()
            .to_string()
    };
    for scheme in ["kafka", "kafka+mock"] {
        let absent = error(&format!("{scheme}:x"));
        assert_eq!(absent, format!("byte 0 of the URI: {scheme}: {why}"));
        assert!(media.is_named_by(&format!("{scheme}:x")));
    }
    assert_eq!(error("null:"), "opened");
    let unknown = error("kafkaa:x");
    assert!(
        unknown.contains("no known scheme, use one of jsonl:, kieker-log:, null:"),
        "{unknown}"
    );
    assert!(!unknown.contains("kafka:"), "{unknown}");
}
