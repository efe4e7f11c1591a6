use super::super::case::{Case, looks_of};
use super::super::cell::tests::case;
use super::super::cell::tests::{runs, sample};
use super::super::cell::{LATENCY_P99, WIRE_BYTES, cells};
use super::super::model::single_messages;
use super::*;
use crate::statistics::Interval;

fn cell(size: u32) -> Cell {
    let messages = 10_000.0 / f64::from(size);
    let payload =
        payload_per_record("none", Material::of_seed(1), f64::from(size), 10_000.0).unwrap();
    let looks = looks_of(f64::from(size), 500.0, 10_000.0);
    let made = single_messages(messages, looks);
    let mut sample = sample(0.004 + made * 1e-5, 10_000.0);
    let figures = [
        (WIRE_BYTES, payload * 10_000.0 + 60.0 * messages),
        (LATENCY_P99, 1.0 + f64::from(size) / 10.0),
    ];
    let figures = figures.map(|(name, value)| (name.to_owned(), value));
    sample.figures.extend(figures);
    let case = Case {
        rate: Some(10_000.0),
        ..case(Way::Baler, Some(size))
    };
    cells(&[case], &[runs(&[sample])]).remove(0)
}

#[test]
fn the_cheapest_size_within_the_bounds_is_found_between_the_measured_ones() {
    let cells = [1, 16, 32, 128, 1_024].map(cell);
    let model = CostModel::fit(&cells, "none", Material::of_seed(1))
        .unwrap()
        .unwrap();
    let between = || model.held_out.iter().filter(|one| one.between);
    assert_eq!(between().count(), 3);
    let is_close = |error: f64| error.abs() < 0.02;
    assert!(
        between().all(|one| is_close(one.cpu_error) && is_close(one.bytes_error)),
        "{model:?}"
    );
    let mut cells = cells;
    // The model does not know this.
    let late = Interval {
        mean: 77.7,
        low: 70.0,
        high: 80.0,
    };
    cells[4].figures.insert(LATENCY_P99, Some(late));
    let best = |bounds| {
        recommend(
            &cells,
            std::slice::from_ref(&model),
            bounds,
            Material::of_seed(1),
        )
        .unwrap()
    };
    let free = best(Bounds::default());
    assert_eq!(free[0].expected.chunk_records, 1_024);
    assert!(free[0].measured);
    assert_eq!(free[0].expected.latency_ms_p99, 77.7);
    let bounded = best(Bounds {
        max_latency_ms: Some(30.0),
        max_bytes_per_second: None,
    });
    let size = bounded[0].expected.chunk_records;
    assert!(size == 256 && !bounded[0].measured, "{bounded:?}");
    assert!(bounded[0].expected.latency_ms_p99 <= 30.0);
    let none = best(Bounds {
        max_latency_ms: Some(0.5),
        max_bytes_per_second: None,
    });
    assert!(none.is_empty());
    let narrow = best(Bounds {
        max_latency_ms: None,
        max_bytes_per_second: Some(1),
    });
    assert!(narrow.is_empty());
}
