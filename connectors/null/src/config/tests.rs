use super::*;

#[test]
fn anything_behind_the_scheme_is_an_error() {
    let config = |text: &str| NullConfig::from_uri(Uri::parse(text).unwrap());
    assert_eq!(config("null:"), Ok(NullConfig::default()));
    for wrong in ["null://host", "null:path", "null:?a=1"] {
        assert!(config(wrong).is_err(), "{wrong}");
    }
}
