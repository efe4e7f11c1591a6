use super::*;

fn records(text: &[u8], joins: bool, end: End) -> Vec<&str> {
    let mut rest = text;
    let mut records = Vec::new();
    while let Found::Record {
        bytes, with_end, ..
    } = find(rest, joins, end)
    {
        records.push(std::str::from_utf8(&rest[..bytes]).unwrap());
        rest = &rest[with_end..];
    }
    records
}

#[test]
fn lines_without_a_dollar_continue_the_record_before_them() {
    let text = b"$1\nb\r\nc\rd$\r\n$2\r\n\n$3\n$4\r";
    let whole = ["$1\nb\r\nc\rd$", "$2\r\n", "$3"];
    assert_eq!(records(text, true, End::Open), whole);
    let all = ["$1\nb\r\nc\rd$", "$2\r\n", "$3", "$4"];
    assert_eq!(records(text, true, End::Quiet), all);
    assert_eq!(records(b"$1\n$2", true, End::Closed), ["$1"]);
    let lines = records(b"1=a\n2=b\r\n3=c\r4=d\n5", false, End::Open);
    assert_eq!(lines, ["1=a", "2=b", "3=c", "4=d"]);
}

#[test]
fn a_line_end_is_one_wherever_the_bytes_end() {
    let text = b"$1\r\n$2\n";
    for end in 0..text.len() {
        let found = records(&text[..end], true, End::Open);
        let expected: &[&str] = if end > 4 { &["$1"] } else { &[] };
        assert_eq!(found, expected, "{end}");
    }
}
