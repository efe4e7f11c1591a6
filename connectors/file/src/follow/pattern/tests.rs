use super::*;

#[test]
fn patterns_fit_names() {
    for (pattern, name, fits) in [
        ("*.jsonl", "a.jsonl", true),
        ("*.jsonl", ".jsonl", false),
        ("*.jsonl", "a.jsonl.position", false),
        ("a*b*c", "a1b2b3c", true),
        ("a*b*c", "a1b2b3", false),
        ("app-?.log", "app-1.log", true),
        ("app-?.log", "app-12.log", false),
        ("app[0-9x].log", "app7.log", true),
        ("app[0-9x].log", "appx.log", true),
        ("app[!0-9].log", "app7.log", false),
        ("[", "[", true),
        ("*", ".hidden", false),
        ("", "", true),
    ] {
        assert_eq!(is_match(pattern, name), fits, "{pattern} {name}");
    }
}
