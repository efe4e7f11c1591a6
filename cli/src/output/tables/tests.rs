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

#[test]
fn a_document_is_shown_without_what_is_zero() {
    let document = serde_json::json!({
        "to": "null:", "delivered": 1_234, "spooled": 0, "bytes": 2_048, "seconds": 1.239,
        "records_per_second": 29_768.44, "dropped": {"refused": 4, "undelivered": 0},
        "spool": {"found": 1, "waiting_bytes": 1_024, "disk_error": null},
        "workers": [{"chunks": 3, "lanes": 2}, {"chunks": 0}, {"chunks": 5}], "problems": ["a", "b"],
    });
    let rows = figures(&document);
    let rows: Vec<_> = rows.iter().map(|(name, it)| (&**name, &**it)).collect();
    assert_eq!(
        rows,
        [
            ("to", "null:"),
            ("delivered", "1,234"),
            ("bytes", "2.0 KiB"),
            ("seconds", "1.24"),
            ("records per second", "29,768"),
            ("dropped", "refused: 4"),
            ("spool", "1 found"),
            ("", "1.0 KiB waiting"),
            ("workers", "3 chunks, 2 lanes"),
            ("", "nothing"),
            ("", "5 chunks"),
            ("problems", "a"),
            ("", "b"),
        ]
    );
}

#[test]
fn a_document_is_shown_without_what_repeats_and_with_what_was_discarded() {
    let document = serde_json::json!({
        "source": {"records": 0, "chunks": 1, "quarantined": 3,
            "not_kept": {"no_quarantine": 2, "unreported": 5}},
        "emitted": 0, "chunks": 2, "chunks_made": 2, "records_per_chunk": 0.0, "seconds": 0.004,
        "workers": [{"chunks": 2}], "closed_by": {"bytes": 1, "records": 0, "flush": 2},
    });
    let rows = figures(&document);
    let rows: Vec<_> = rows.iter().map(|(name, it)| (&**name, &**it)).collect();
    assert_eq!(
        rows,
        [
            ("source", "0 records"),
            ("", "1 chunk"),
            ("", "1 quarantined"),
            ("discarded", "no quarantine: 2"),
            ("", "unreported: 5"),
            ("emitted", "0"),
            ("chunks", "2"),
            ("seconds", "0.004"),
            ("closed by", "bytes: 1"),
            ("", "flush: 2"),
        ]
    );
}

#[test]
fn a_long_value_goes_on_below_itself() {
    let rows = [("fault", "word ".repeat(30)), ("n", "1".to_owned())];
    let text = two_columns_within(Some(100), &rows);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("  fault  word word"), "{text}");
    assert!(lines[1].starts_with("         word word"), "{text}");
    assert_eq!(lines[2], "  n      1");
    assert!(
        lines.iter().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    let path = "/".repeat(200);
    let long = [("path", path.clone())];
    assert!(two_columns_within(Some(100), &long).contains(&path));
    let text = two_columns_within(None, &rows);
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn a_table_is_as_wide_as_it_may_be() {
    let row = |row: u32| vec!["x".repeat(90), "word ".repeat(30), row.to_string()];
    let short = "x".repeat(8) + "…";
    let columns = ["first", "second", "n"];
    let text = table_within(None, &columns, &[2], (0..3).map(row));
    assert_eq!(text.lines().count(), 4, "{text}");
    let text = table_within(Some(100), &columns, &[2], (0..3).map(row));
    assert!(text.lines().count() > 4);
    assert!(
        text.contains(&short) && text.contains("word word"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
}
