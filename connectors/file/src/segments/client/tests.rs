use super::*;

#[test]
fn only_canonical_names_are_segments() {
    assert_eq!(parse_segment_name(&segment_name(0)), Some(0));
    assert_eq!(parse_segment_name(&segment_name(u64::MAX)), Some(u64::MAX));
    for name in [
        "chunks-1.seg",
        "chunks-+0000000000000000001.seg",
        "chunks-00000000000000000001.seg.tmp",
        "chunks-99999999999999999999.seg",
        "other",
    ] {
        assert_eq!(parse_segment_name(name), None, "{name}");
    }
}
