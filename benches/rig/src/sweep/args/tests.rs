use clap::{CommandFactory as _, Parser};

use super::*;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    args: SweepArgs,
}

pub(in super::super) fn parse(words: &[&str]) -> SweepArgs {
    let words = ["sweep"].iter().chain(words);
    Command::try_parse_from(words).unwrap().args
}

#[test]
fn the_defaults_are_the_papers_and_end_within_a_quarter_of_an_hour() {
    Command::command().debug_assert();
    let args = parse(&[]);
    let cases = args.cases();
    let labels: Vec<_> = cases.iter().map(Case::label).collect();
    assert_eq!(
        labels,
        [
            "pacing",
            "pipelined",
            "awaiting",
            "1",
            "16",
            "32",
            "128",
            "1024"
        ]
    );
    // A second and a half to start, drain and end each run.
    let run = args.warm_up.as_secs_f64() + f64::from(args.seconds.get()) + 1.5;
    let runs = cases.len() * args.repetitions.get();
    let time = f64::from(u32::try_from(runs).unwrap()) * run;
    assert!(time < 14.5 * 60.0, "{time}");
}

#[test]
fn chunks_that_size_themselves_are_a_case_beside_each_compression() {
    let args = [
        "--chunk-sizes=auto,16",
        "--compression=none,lz4",
        "--wait-time=1ms,2ms",
    ];
    let cases = parse(&args).cases();
    let autos: Vec<_> = cases.iter().filter(|case| case.way == Way::Auto).collect();
    assert_eq!(autos.len(), 2);
    for auto in autos {
        assert_eq!((auto.chunk_records, auto.wait_time_ms), (None, Some(100.0)));
    }
    assert_eq!(
        cases.iter().filter(|case| case.way == Way::Baler).count(),
        4
    );
}

#[test]
fn kieker_s_container_is_measured_beside_the_native_one_and_never_compressed() {
    let args = [
        "--container=kieker,native",
        "--chunk-sizes=auto,16,32",
        "--compression=none,lz4",
    ];
    let cases = parse(&args).cases();
    let of = |way| cases.iter().filter(move |case| case.way == way);
    assert_eq!(of(Way::Kieker).count(), 2);
    assert!(of(Way::Kieker).all(|case| case.compression.as_deref() == Some("none")));
    assert_eq!((of(Way::Baler).count(), of(Way::Auto).count()), (4, 2));
    let alone = parse(&["--container=kieker", "--chunk-sizes=auto,16"]);
    let error = alone.check().unwrap_err().to_string();
    assert!(error.contains("add native"), "{error}");
}

#[test]
fn what_nobody_reads_is_only_written() {
    let cases = parse(&["--to=null:", "--consumers=0"]).cases();
    assert!(
        cases
            .iter()
            .all(|case| !case.is_read() && !case.way.is_plain())
    );
    for (words, is_right) in [
        (["--to=null:", "--consumers=0"], true),
        (["--to=file:///tmp/x", "--consumers=0"], true),
        (["--to=kafka+mock:x", "--consumers=0,1"], true),
        (["--rate=10k,max", "--consumers=1"], true),
        (["--to=kafka://a/x", "--rate=max"], true),
        (["--to=null:", "--consumers=1"], false),
        (["--to=tcp://127.0.0.1:0", "--consumers=0"], false),
    ] {
        assert_eq!(parse(&words).check().is_ok(), is_right, "{words:?}");
    }
}

#[test]
fn every_combination_is_a_case_and_each_once() {
    let cases = parse(&[
        "--chunk-sizes=8,8,64",
        "--rate=1k,max",
        "--compression=none,zstd",
        "--wait-time=100ms",
        "--consumers=1,2",
    ])
    .cases();
    let baler = cases.iter().filter(|case| case.way == Way::Baler).count();
    assert_eq!(baler, 2 * 2 * 2 * 2);
    let of = |way| cases.iter().filter(|case| case.way == way).count();
    assert_eq!((of(Way::Pipelined), of(Way::Awaiting)), (4, 4));
    // The cost of the load does not depend on the medium.
    assert_eq!(of(Way::Pacing), 1);
    assert_eq!(partitions(&cases), 2);
}

#[test]
fn wrong_values_are_refused() {
    for wrong in [
        "--rate=0",
        "--chunk-sizes=0",
        "--compression=gzip",
        "--container=added",
        "--wait-time=0s",
        "--consumers=65",
    ] {
        assert!(
            Command::try_parse_from(["sweep", wrong]).is_err(),
            "{wrong}"
        );
    }
    let bounded = parse(&["--max-latency=100ms"]).cases();
    let wait = bounded.iter().find_map(|case| case.wait_time_ms);
    assert_eq!(wait, Some(50.0));
    assert_eq!(rate("2.5k"), Ok(Rate::Of(2_500.0)));
    assert_eq!(rate("max"), Ok(Rate::Max));
}
