use clap::Parser;

use super::super::case::Case;
use super::super::cell::cells as cells_of;
use super::super::cell::tests::{case, runs, sample};
use super::*;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    args: SweepArgs,
}

fn args(words: &[&str]) -> SweepArgs {
    Command::try_parse_from(["sweep"].iter().chain(words))
        .unwrap()
        .args
}

/// The client library alone, and chunks of these sizes with their CPU time in seconds a second. A chunk
/// arrives after a millisecond a record, and its bytes a second are 64,000 by its size.
fn cells(sizes: &[(u32, f64)]) -> Vec<Cell> {
    let plain = (case(Way::Pipelined, None), sample(0.4, 1_000.0));
    let chunks = sizes.iter().map(|(size, cpu)| {
        let mut sample = sample(*cpu, 1_000.0);
        let figures = [
            (LATENCY_P99, f64::from(*size)),
            (WIRE_BYTES, 64_000.0 / f64::from(*size)),
        ];
        let figures = figures.map(|(name, value)| (name.to_owned(), value));
        sample.figures.extend(figures);
        (case(Way::Baler, Some(*size)), sample)
    });
    let (cases, all): (Vec<Case>, Vec<_>) = std::iter::once(plain)
        .chain(chunks)
        .map(|(case, sample)| (case, runs(&[sample.clone(), sample])))
        .unzip();
    cells_of(&cases, &all)
}

fn sizes(cells: &[Cell], words: &[&str]) -> Vec<Option<u32>> {
    let best = recommend(cells, &args(words));
    best.iter().map(|cell| cell.case.chunk_records).collect()
}

#[test]
fn the_cheapest_size_within_the_bounds_is_recommended_and_the_smallest_of_equal_ones() {
    let cells = cells(&[(16, 0.3), (64, 0.201), (256, 0.2), (1_024, 0.1)]);
    assert_eq!(sizes(&cells, &[]), [Some(1_024)]);
    assert_eq!(sizes(&cells, &["--max-latency=300ms"]), [Some(64)]);
    assert_eq!(
        sizes(&cells, &["--max-bytes-per-second=900"]),
        [Some(1_024)]
    );
    assert_eq!(sizes(&cells, &["--max-latency=2ms"]), []);
}

#[test]
fn what_did_not_keep_up_is_neither_recommended_nor_compared_with() {
    let mut cells = cells(&[(16, 0.3), (1_024, 0.1)]);
    cells[2].saturated = true;
    assert_eq!(sizes(&cells, &[]), [Some(16)]);
    cells[2].saturated = false;
    let said = advice(&cells[2], &cells).join(" ");
    assert!(
        said.contains("75 % less CPU time than with the client library alone"),
        "{said}"
    );
    assert!(
        said.contains("within 1.02k ms instead of 2.00 ms"),
        "{said}"
    );
    cells[0].saturated = true;
    let said = advice(&cells[2], &cells).join(" ");
    assert!(said.contains("pipelined, was saturated"), "{said}");
    assert!(said.contains("than with chunk_records = 16 "), "{said}");
}

#[test]
fn a_recommendation_that_is_not_better_beyond_its_interval_says_so() {
    let mut cells = cells(&[(16, 0.3), (1_024, 0.29)]);
    for cell in &mut cells {
        if let Some(Some(cpu)) = cell.figures.get_mut(WRITER_CPU) {
            (cpu.low, cpu.high) = (cpu.mean - 0.2, cpu.mean + 0.2);
        }
    }
    let said = advice(&cells[2], &cells).join(" ");
    assert!(said.contains("do not expect a gain"), "{said}");
    assert!(
        said.contains("overlaps that of chunk_records = 16:"),
        "{said}"
    );
}
