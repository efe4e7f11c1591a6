use super::*;

#[test]
fn figures_are_readable() {
    assert_eq!(number(0), "0");
    assert_eq!(number(999), "999");
    assert_eq!(number(6_541), "6,541");
    assert_eq!(number(1_234_567), "1,234,567");
    assert_eq!(bytes(1_023), "1023 B");
    assert_eq!(bytes(1_536), "1.5 KiB");
    assert_eq!(counted(1, "chunk"), "1 chunk");
    assert_eq!(counted(1_024, "record"), "1,024 records");
}
