use super::*;

#[test]
fn days_are_those_of_the_calendar() {
    for (days, expected) in [
        (0, "1970-01-01"),
        (-1, "1969-12-31"),
        (59, "1970-03-01"),
        (11_016, "2000-02-29"),
        (11_017, "2000-03-01"),
        (19_722, "2023-12-31"),
        (19_723, "2024-01-01"),
        (20_778, "2026-11-21"),
    ] {
        assert_eq!(day(days), expected);
    }
}

#[test]
fn a_name_never_leads_out_of_the_folder_nor_hides_it() {
    assert_eq!(folder_name("shop.Order"), "shop.Order");
    assert_eq!(folder_name("../../etc"), "%2E.%2F..%2Fetc");
    assert_eq!(folder_name("_hidden"), "%5Fhidden");
    assert_eq!(folder_name("ä b"), "%C3%A4%20b");
    assert!(folder_name(&"/".repeat(1_000)).len() <= MAX_NAME_BYTES);
}

#[test]
fn rows_are_sorted_into_days_and_hours() {
    let key = Key {
        fingerprint: Schema::new("T", Vec::new()).unwrap().fingerprint(),
        producer: None,
        slot: None,
    };
    let day = 24 * NS_PER_HOUR;
    let times = [day, -1, day - 1, day + NS_PER_HOUR, -5, i64::MIN];
    let days = rows_by_key(key, TimePartition::Day, &times);
    let days: Vec<_> = days
        .into_iter()
        .map(|(key, rows)| (key.slot, rows))
        .collect();
    let first = i64::MIN.div_euclid(day) * 24;
    let expected = [
        (None, vec![1]),
        (Some(first), vec![5]),
        (Some(-24), vec![4]),
        (Some(0), vec![2]),
        (Some(24), vec![0, 3]),
    ];
    assert_eq!(days, expected);
    let hours = rows_by_key(key, TimePartition::Hour, &times);
    let hours: Vec<_> = hours.into_iter().map(|(key, _)| key.slot).collect();
    let first = i64::MIN.div_euclid(NS_PER_HOUR);
    let expected = [None, Some(first), Some(-1), Some(23), Some(24), Some(25)];
    assert_eq!(hours, expected);
}
