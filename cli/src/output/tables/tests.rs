use super::*;

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
