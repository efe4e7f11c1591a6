use super::super::kind::KINDS;
use super::*;

/// Two runs of batches around these times, which differ by less than a thousandth.
fn runs(versions: &[f64]) -> Runs<Measured> {
    let random = &mut Random::new(versions.len() as u64);
    let mut batches = |ns: &f64| -> Vec<f64> {
        (0..60)
            .map(|_| ns * (1.0 + random.unit() / 1_000.0))
            .collect()
    };
    let mut sample = || Measured {
        batches_ns: versions.iter().map(&mut batches).collect(),
        batch_calls: 10.0,
    };
    Runs {
        samples: vec![sample(), sample()],
        failure: None,
    }
}

fn group() -> Group {
    Group {
        kind: &KINDS[0],
        function_us: 1,
        slowdowns: vec![0, 2],
    }
}

#[test]
fn rows_say_from_how_many_calls_on_a_slowdown_is_found() {
    let same = [runs(&[1_000.0]), runs(&[1_000.0]), runs(&[1_000.0; 2])];
    let slower = [runs(&[1_020.0]), runs(&[1_000.0, 1_020.0])];
    let rows = group().rows(&[&same[..], &slower].concat(), 1);
    let of = |design, percent| {
        let mut rows = rows.iter();
        rows.find(|row| row.design == design && row.slowdown_percent == percent)
            .unwrap()
    };
    for design in [Design::Duet, Design::Separate] {
        let row = of(design, 2);
        // Six batches are the fewest.
        assert_eq!((row.calls, row.calls_high), (Some(60.0), Some(60.0)));
        assert_eq!(row.most_calls, 300.0);
        assert!((row.base_ns.unwrap() - 1_000.0).abs() < 2.0, "{row:?}");
        assert!(row.noise_percent.unwrap() < 0.1 && row.run_noise_percent.unwrap() < 0.1);
        assert_eq!(of(design, 0).calls, None);
    }
    let text = table(&rows);
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    let svg = chart(&rows).unwrap();
    assert!(
        svg.contains("none 1 µs duet") && svg.contains("separate"),
        "{svg}"
    );
}

#[test]
fn a_run_that_failed_is_told_and_finds_nothing() {
    let mut failed = runs(&[1_000.0]);
    failed.failure = Some(Failure::new("it broke"));
    let duet = || runs(&[1_000.0, 1_020.0]);
    let runs = [failed, runs(&[1_000.0]), duet(), runs(&[1_020.0]), duet()];
    let rows = group().rows(&runs, 1);
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row.calls.is_none()));
    assert!(table(&rows).ends_with("none: it broke\n"));
}
