use super::*;

#[test]
fn patterns_match_full_and_short_names() {
    let name = "kieker.common.record.flow.trace.TraceMetadata";
    for (pattern, matches) in [
        (name, true),
        ("TraceMetadata", true),
        ("*Metadata", true),
        ("kieker.common.*", true),
        ("*.flow.*.Trace*", true),
        ("*", true),
        ("Trace", false),
        ("*Event", false),
        ("kieker.*.flow", false),
        ("", false),
    ] {
        assert_eq!(
            TypePattern::new(pattern).matches(name),
            matches,
            "{pattern}"
        );
    }
    assert!(TypePattern::new("Order").matches("shop::Order"));
    assert!(TypePattern::new("**a*").matches("bab"));
}
