//! What a line is, and what is none.

use std::fs;

use crate::lines::support::{Folder, all, append};

#[test]
fn a_byte_order_mark_carriage_returns_and_nuls_cost_no_line() {
    let folder = Folder::new();
    let log = folder.path("log");
    append(
        &log,
        b"\xef\xbb\xbf{\"n\":1}\r\n\r\n\0\0\0\0{\"n\":2}\r\n\0\n{\"n\":3}\n",
    );
    let mut reader = folder.reader("jsonl", "log");
    let came = all(&mut *reader);
    assert_eq!(came.records, ["json n=1", "json n=2", "json n=3"]);
    assert!(came.damaged.is_empty() && came.ended);
    assert!(reader.stats().counts.contains(&("nul_bytes", 5)));
}

#[test]
fn a_hole_that_a_truncation_left_costs_no_line() {
    let folder = Folder::new();
    let log = folder.path("log");
    let hole = vec![0; 3_000_000];
    append(&log, [&hole[..], b"{\"n\":1}\n"].concat());
    let mut reader = folder.reader("jsonl", "log");
    let came = all(&mut *reader);
    assert_eq!(came.records, ["json n=1"]);
    assert!(came.damaged.is_empty());
    assert!(reader.stats().counts.contains(&("nul_bytes", 3_000_000)));
}

#[test]
fn bad_lines_are_returned_with_their_offset_and_long_ones_with_their_length() {
    let folder = Folder::new();
    let long = "x".repeat(300_000);
    append(
        &folder.path("log"),
        format!("{{\"n\":1}}\r\n\n no\n{long}\n{{\"n\":2}}\n\u{e9}{{}}\n{{\"n\":3}}"),
    );
    append(&folder.path("log"), b"\n\xff\n");
    let mut reader = folder.reader("jsonl", "log?max_line_bytes=20");
    let came = all(&mut *reader);
    assert_eq!(came.records, ["json n=1", "json n=2", "json n=3"]);
    let too_long = "the line has 300000 bytes, more than the limit of 20 (max_line_bytes)";
    let bad = came.bad();
    assert_eq!(bad[0].0, 10);
    assert_eq!(bad[0].1, b" no");
    assert!(bad[0].2.starts_with("the line is not JSON"));
    assert_eq!(bad[1], (14, long.as_bytes(), too_long));
    assert!(bad[3].2.starts_with("the line is not UTF-8"), "{bad:?}");
    let counts = reader.stats().counts;
    assert!(counts.contains(&("too_long", 1)) && counts.contains(&("not_a_record", 3)));
}

/// Also at the end of a file, and in a pipe, which has no next run.
#[test]
fn a_long_line_without_an_end_is_reported_once() {
    let folder = Folder::new();
    append(&folder.path("log"), "x".repeat(700_001));
    let came = all(&mut *folder.reader("jsonl", "log?max_line_bytes=20"));
    let [(0, bytes, reason)] = came.bad()[..] else {
        panic!("{:?}", came.bad());
    };
    assert_eq!(bytes, "x".repeat(700_001).as_bytes());
    assert!(reason.starts_with("the line has 700001 bytes"), "{reason}");
}

#[test]
fn text_is_a_record_with_one_field() {
    let folder = Folder::new();
    append(&folder.path("syslog"), "a \"b\"\n\n  c\nlast");
    let came = all(&mut *folder.reader("text", "syslog"));
    assert_eq!(
        came.records,
        ["text line=a \"b\"", "text line=  c", "text line=last"]
    );
    let came = all(&mut *folder.reader("text", "syslog?type=syslog&origin"));
    let first = &came.records[0];
    let (start, end) = first.split_once(" origin_id=").unwrap();
    let log = fs::canonicalize(folder.path("syslog")).unwrap();
    assert_eq!(
        start,
        format!("syslog line=a \"b\" origin_file={}", log.display())
    );
    let (id, offset) = end.split_once(' ').unwrap();
    assert_eq!((id.len(), offset), (16, "origin_offset=0"));
    assert!(came.records[1].ends_with(&format!("origin_id={id} origin_offset=7")));
}

#[test]
fn many_lines_are_several_chunks_in_order() {
    let folder = Folder::new();
    let lines: String = (0..5_000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    append(&folder.path("log"), lines);
    let came = all(&mut *folder.reader("jsonl", "log"));
    let expected: Vec<_> = (0..5_000).map(|n| format!("json n={n}")).collect();
    assert_eq!(came.records, expected);
}

#[test]
fn a_line_that_was_put_aside_can_be_a_chunk_later() {
    use baler_common::container::ChunkDecoder;
    use baler_connector_file::lines::chunk_of_line;

    let (identity, chunk) = chunk_of_line(b"\xef\xbb\xbf{\"type\":\"a\"}\r", "jsonl").unwrap();
    let decoded = ChunkDecoder::default().decode(&chunk).unwrap();
    assert_eq!(decoded.summary.identity(), Some(identity));
    assert_eq!(decoded.batch.records().next().unwrap().type_name(), "a");
    assert!(chunk_of_line(b"no", "jsonl").is_err());
    assert!(chunk_of_line(b"no", "text").is_ok());
}
