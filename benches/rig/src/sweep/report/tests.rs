use super::super::case::Way;
use super::super::cell::cells as cells_of;
use super::super::cell::tests::{case, runs, sample};
use super::*;

fn cells() -> Vec<Cell> {
    let cases = [
        (Way::Pipelined, None, 0.612_345),
        (Way::Awaiting, None, 1.5),
        (Way::Baler, Some(1), 0.5),
        (Way::Baler, Some(1_024), 0.012_3),
    ];
    let all = cases.map(|(_, _, cpu)| {
        let mut sample = sample(cpu, 1_000.0);
        for name in [BROKER_CPU, READER_CPU] {
            sample.figures.insert(name.to_owned(), 0.123_456);
        }
        runs(&[sample.clone(), sample])
    });
    cells_of(&cases.map(|(way, size, _)| case(way, size)), &all)
}

#[test]
fn the_tables_fit_100_columns_and_name_every_cell() {
    let mut cells = cells();
    let mut other = cells[3].clone();
    other.case.rate = None;
    other.case.consumers = 16;
    other.case.compression = Some("zstd:19".to_owned());
    other.case.wait_time_ms = Some(1.25);
    cells.push(other);
    cells[1].failure = Some("a long story about what was wrong ".repeat(5));
    cells[2].lost = 3;
    let text = text(None, &cells, &[], Some(&[]));
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    for name in [
        "pipelined",
        "awaiting",
        "1024",
        "max",
        "No setting",
        "1: 3 records",
        "±95 %: The 95 % confidence interval",
        "p99 ms: The same for 99 %",
    ] {
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn a_cost_too_small_to_be_known_is_not_zero() {
    assert_eq!(known(0.0, 1), "less than 0.1");
    assert_eq!(known(0.04, 1), "less than 0.1");
    assert_eq!(known(0.06, 1), "0.1");
    assert_eq!(known(0.2, 0), "less than 1");
    assert_eq!(known(23.45, 1), "23.4");
}
