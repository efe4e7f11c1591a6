use super::*;

#[test]
fn a_document_is_shown_without_what_is_zero() {
    let document = serde_json::json!({
        "to": "null:", "delivered": 1_234, "spooled": 0, "bytes": 2_048, "seconds": 1.239,
        "records_per_second": 29_768.44, "dropped": {"refused": 4, "undelivered": 0},
        "spool": {"found": 1, "waiting_bytes": 1_024, "disk_error": null},
        "workers": [{"chunks": 3, "lanes": 2}, {"chunks": 0}, {"chunks": 5}], "problems": ["a", "b"],
    });
    let rows = figures_of(&document);
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
fn lanes_keep_the_names_of_their_medium() {
    let document = serde_json::json!({
        "lag_by_lane": {"calls": 1, "web_calls": 0, "heap_bytes": 2_048},
    });
    let rows = figures_of(&document);
    let rows: Vec<_> = rows.iter().map(|(name, it)| (&**name, &**it)).collect();
    assert_eq!(
        rows,
        [("lag by lane", "calls: 1"), ("", "heap_bytes: 2,048")]
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
    let rows = figures_of(&document);
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
fn a_count_of_one_has_a_singular() {
    for (plural, name) in [
        ("chunk copies", "chunk copy"),
        ("chunks forwarded", "chunk forwarded"),
        ("classes with hosts", "class with hosts"),
        ("found", "found"),
        ("late records", "late record"),
        ("losses", "loss"),
        ("without class", "without class"),
    ] {
        assert_eq!(singular(plural), name);
    }
}

#[test]
fn parts_of_a_figure_stand_above_the_figures_within_it() {
    let document = serde_json::json!({
        "source": {"records": 3, "losses": {"queue": 1}, "chunks": 1},
    });
    let rows = figures_of(&document);
    let rows: Vec<_> = rows.iter().map(|(name, it)| (&**name, &**it)).collect();
    let expected = [
        ("source", "3 records"),
        ("", "1 chunk"),
        ("losses", "queue: 1"),
    ];
    assert_eq!(rows, expected);
}
