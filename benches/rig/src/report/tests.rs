use super::*;

#[test]
fn text_stands_left_and_numbers_stand_right() {
    let columns = [
        Column::text("name", |row: &(&str, &str)| row.0.to_owned()),
        Column::number("rate", |row: &(&str, &str)| row.1.to_owned()),
        Column::text("hidden", |_| String::new()).shown_for(|rows| rows.is_empty()),
    ];
    let rows = [("emit", "12"), ("öl", "1234567")];
    let expected = "name     rate\nemit       12\nöl    1234567\n";
    assert_eq!(table(&rows, &columns), expected);
}

#[test]
fn a_wide_table_goes_on_in_parts_that_name_their_rows() {
    let wide = |heading| Column::number(heading, |row: &(&str, &str)| row.1.repeat(15));
    let columns = [
        Column::text("name", |row: &(&str, &str)| row.0.to_owned()).key(),
        wide("first"),
        wide("second"),
        wide("third"),
    ];
    let text = table(&[("a", "12")], &columns);
    let parts: Vec<&str> = text.split("\n\n").collect();
    let [first, rest] = parts[..] else {
        panic!("{text}");
    };
    assert!(first.contains("first") && first.contains("second") && first.contains("\na  "));
    assert!(rest.starts_with("name") && rest.contains("third") && rest.contains("\na  "));
    assert!(
        text.lines().all(|line| line.chars().count() <= WIDTH),
        "{text}"
    );
}
