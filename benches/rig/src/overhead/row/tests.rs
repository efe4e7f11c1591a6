use super::super::variant::Alone;
use super::*;

const NOBODY: Variant = Variant::new("nobody", "", |_| Ok(Box::new(Alone(|_| 0))));

fn case(variant: &str) -> Case {
    Case {
        variant: variant.into(),
        threads: 1,
        depth: 10,
        calls: 200,
    }
}

fn measured(batches_ns: &[u64], lost: u64) -> Measured {
    Measured {
        batches_ns: batches_ns.to_vec(),
        calls_a_batch: 1_000,
        background_cpu_ns: 4_000,
        calls: 2_000,
        lost,
    }
}

#[test]
fn a_row_says_what_its_repetitions_say() {
    let repetitions = [
        measured(&[10_000, 12_000, 50_000], 0),
        measured(&[20_000; 3], 3),
    ];
    let row = Row::new(&case("clock"), &NOBODY, &repetitions, None);
    assert_eq!(row.median_ns_per_call, Some(20.0));
    assert_eq!(row.mean_ns_per_call, Some(22.0));
    assert!((row.mean_margin_ns.unwrap() - 12.706 * 2.0).abs() < 1e-6);
    assert_eq!(row.background_cpu_ns_per_call, Some(8_000.0 / 6_000.0));
    assert_eq!((row.lost, row.records, row.batches), (3, 4_000, 6));
}

#[test]
fn rows_are_compared_with_the_controls_beside_them() {
    let row = |name, ns| Row::new(&case(name), &NOBODY, &[measured(&[ns], 0)], None);
    let mut rows = [
        row("none", 1_000),
        row("clock", 17_000),
        row("operation", 34_000),
    ];
    compare(&mut rows);
    assert_eq!(rows[2].times_clock, Some(2.0));
    assert_eq!(rows[2].over_none_ns, Some(33.0));
    let mut alone = [row("operation", 34_000)];
    compare(&mut alone);
    assert_eq!(alone[0].times_clock, None);
    // Rows with other threads are no control.
    rows[1].threads = 2;
    compare(&mut rows);
    assert_eq!(rows[2].times_clock, None);
}

#[test]
fn the_table_shows_columns_in_which_rows_differ() {
    let mut rows = vec![Row::new(&case("none"), &NOBODY, &[measured(&[1_000], 0)], None); 2];
    assert!(!table(&rows).contains("depth"));
    assert!(!table(&rows).contains("reports"));
    rows[1].depth = 2;
    rows[1].settings = "reports every 10 ms";
    rows[1].failure = Some("it broke".into());
    let text = table(&rows);
    assert!(
        text.contains("depth")
            && text.contains("\nnone: reports every 10 ms\n")
            && text.ends_with("none: it broke\n"),
        "{text}"
    );
}

#[test]
fn the_table_is_the_one_that_was_read() {
    let row = |name, ns, lost| {
        let repetitions = [measured(&[ns; 3], lost), measured(&[ns + 900; 3], 0)];
        Row::new(&case(name), &NOBODY, &repetitions, None)
    };
    let mut rows = vec![
        row("none", 1_000, 0),
        row("clock", 17_000, 0),
        row("operation-drop-oldest", 34_000, 12),
        row("queue-blocking", 812_000, 0),
    ];
    rows[1].threads = 2;
    rows[2].settings = "a circular queue of 65,536 records";
    rows[3].failure = Some("the account does not add up".to_owned());
    rows.push(row("clock", 19_000, 0));
    compare(&mut rows);
    rows[2].instructions_per_call = Some(120.0);
    let text = table(&rows);
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../cli/tests/golden/overhead.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(path).unwrap());
}
