use baler_rig::Failure;
use clap::Parser as _;

use super::super::Args;
use super::*;

fn row(times: &[f64], failure: Option<Failure>) -> Row {
    let samples = times.iter().map(|ns| Sample {
        encode_ns: *ns,
        decode_ns: 2.0 * ns,
        rows_ns: Some(3.0 * ns),
    });
    let runs = Runs {
        samples: samples.collect(),
        failure,
    };
    let case = Case::all(&Args::parse_from(["codec", "--only=columnar"])).swap_remove(0);
    Row::new(&case, 1_000, Some(20_000), &runs)
}

#[test]
fn figures_are_those_of_the_median_repetition() {
    let row = row(&[30.0, 10.0, 20.0], None);
    assert_eq!((row.encode_ns, row.decode_ns), (Some(20.0), Some(40.0)));
    assert_eq!(row.decode_range_ns, Some([20.0, 60.0]));
    assert_eq!(row.rows_ns, Some(60.0));
    assert_eq!(row.bytes_per_record, Some(20.0));
    assert!(row.verified);
}

#[test]
fn a_failure_is_shown_and_never_verified() {
    let failed = row(&[1.0], Some(Failure::new("other records came out")));
    assert!(!failed.verified && !row(&[], None).verified);
    let text = table(&[failed]);
    assert!(
        text.contains("NO") && text.contains("other records"),
        "{text}"
    );
}
