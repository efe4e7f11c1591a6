//! Forms of headers, and their values that never show.

use super::*;

fn parsed(text: &str) -> Option<HeaderMap> {
    parse(text.split(','))
}

#[test]
fn headers_are_read_and_their_values_never_show() {
    let headers = parsed("Api-Key=a=b, x = two words,,x=again").unwrap();
    assert_eq!(headers["api-key"], "a=b");
    let both: Vec<_> = headers.get_all("x").iter().collect();
    assert_eq!(both, ["two words", "again"]);
    let shown = format!("{headers:?}");
    assert!(
        shown.contains("api-key") && !shown.contains("a=b"),
        "{shown}"
    );
}

#[test]
fn other_forms_and_the_headers_of_every_request_are_refused() {
    for text in [
        "a",
        "=x",
        "a b=x",
        "a=\u{7}",
        "Content-Type=x",
        "te=x",
        "grpc-timeout=1S",
    ] {
        assert!(parsed(text).is_none(), "{text}");
    }
}

#[test]
fn a_file_has_a_header_in_each_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("headers");
    fs::write(&path, "api-key=a,b%20c\r\n\nx=y\n").unwrap();
    let headers = read(&path).unwrap();
    assert_eq!(
        (&headers["api-key"], &headers["x"]),
        (&"a,b%20c".parse().unwrap(), &"y".parse().unwrap())
    );
    fs::write(&path, "hush").unwrap();
    let error = read(&path).unwrap_err().at("x").to_string();
    assert!(
        error.contains("headers_file") && !error.contains("hush"),
        "{error}"
    );
}
