//! Hybrid monitoring: which probes record, and that they all do again without it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::record::sampling::PartTimeRecord;
use baler_connector_kieker::pattern::{Dialect, PatternList};
use baler_connector_kieker::types::OperationExecutionRecord;
use baler_monitoring::{Hybrid, probe};

use crate::probe::recording::one_at_a_time;
use crate::support::{Medium, PATIENCE, await_that, of_type, plain};

#[probe(name = "h.visit()")]
fn visit() {
    search();
    rank();
    price();
    forbidden();
}

#[probe(name = "h.search()")]
fn search() {
    busy(300);
}

#[probe(name = "h.rank()")]
fn rank() {
    busy(200);
}

#[probe(name = "h.price()", record = duration)]
fn price() {
    busy(200);
}

#[probe(name = "h.forbidden()")]
fn forbidden() {
    busy(200);
}

fn busy(micros: u64) {
    let end = Instant::now() + Duration::from_micros(micros);
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// Makes visits until it is dropped.
struct Visits<'a>(&'a AtomicBool);

impl Drop for Visits<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn the_probes_of_hot_spots_record() {
    let _alone = one_at_a_time();
    let (patterns, errors) = PatternList::parse("- h.forbidden()", Dialect::Strict);
    assert_eq!(errors, []);
    // A machine that runs tests is busy: the budget is no limit here.
    let hybrid = Hybrid {
        budget_per_mille: 500,
        period: Duration::from_millis(100),
        hot_spots: 3,
    };
    let medium = Medium::default();
    let controller = plain(medium.writer(64))
        .patterns(patterns)
        .hybrid(hybrid)
        .start()
        .unwrap();
    controller.install();
    let wanted: BTreeSet<String> = ["h.search()", "h.rank()", "h.price()"]
        .map(str::to_owned)
        .into();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _visits = Visits(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                visit();
            }
        });
        await_that("the hot spots", || {
            controller.flush(PATIENCE).unwrap();
            thread::park_timeout(Duration::from_millis(50));
            let records = of_type::<PartTimeRecord>(&medium);
            let last = records.last().map_or(0, |it| it.timestamp);
            let last = records.iter().filter(|it| it.timestamp == last);
            let hot = last.filter(|it| it.is_recorded);
            hot.map(|it| it.operation_signature.clone())
                .collect::<BTreeSet<_>>()
                == wanted
        });
    });
    let report = controller.shutdown(PATIENCE);
    assert!(report.adds_up(), "{report}");
    assert_eq!(controller.sampler_stats().failed, 0);

    let records = of_type::<PartTimeRecord>(&medium);
    for record in &records {
        assert!(record.share > 0.0 && record.share <= 1.0);
        assert!(record.off <= record.interval, "{record:?}");
        if let Some(calls) = record.all_calls() {
            assert!(calls.interval.0 <= calls.value && calls.value <= calls.interval.1);
        }
    }
    let forbidden: Vec<_> = records
        .iter()
        .filter(|it| it.operation_signature == "h.forbidden()")
        .collect();
    // It is seen, but never recorded.
    assert!(forbidden.iter().any(|it| it.seen > 0.0), "{forbidden:?}");
    assert!(!forbidden.iter().any(|it| it.is_recorded));
    let calls = of_type::<OperationExecutionRecord>(&medium);
    let recorded: BTreeSet<_> = calls
        .iter()
        .map(|it| it.operation_signature.as_str())
        .collect();
    // Calls before the sampler's first look are recorded, too.
    assert!(recorded.is_superset(&["h.search()", "h.rank()"].into()));
    assert!(!recorded.contains("h.forbidden()"), "{recorded:?}");

    let medium = Medium::default();
    let controller = plain(medium.writer(64)).start().unwrap();
    controller.install();
    await_that("all active probes to record", || {
        visit();
        controller.flush(PATIENCE).unwrap();
        let calls = of_type::<OperationExecutionRecord>(&medium);
        let names: BTreeSet<_> = calls
            .iter()
            .map(|it| it.operation_signature.as_str())
            .collect();
        names == BTreeSet::from(["h.visit()", "h.search()", "h.rank()", "h.forbidden()"])
    });
    let report = controller.shutdown(PATIENCE);
    assert!(report.adds_up(), "{report}");
}
