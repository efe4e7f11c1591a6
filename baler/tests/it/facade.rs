//! Calls through this crate run the code of `monitoring`, with the same types and functions.

use std::any::TypeId;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::ptr;
use std::time::Duration;

use baler::{Controller, enter};

use crate::support::{Order, PATIENCE, order};

fn type_of<T: 'static>(_: T) -> TypeId {
    TypeId::of::<T>()
}

#[test]
fn emit_and_probes_are_those_of_monitoring() {
    // A re-exported function has the same type, and two different functions never do.
    let facade = type_of(baler::emit::<Order>);
    assert_eq!(facade, type_of(baler_monitoring::emit::<Order>));
    let site = TypeId::of::<baler::monitoring::__private::Site>();
    assert_eq!(site, TypeId::of::<baler_monitoring::__private::Site>());
    // The controller has no field but that of monitoring, so a call needs no step in between.
    let size = size_of::<baler_monitoring::Controller>();
    assert_eq!(size_of::<Controller>(), size);
    let controller = Controller::to("null:").unwrap();
    let inner: &baler_monitoring::Controller = &controller;
    assert!(ptr::addr_eq(&raw const controller, inner));
}

#[baler::probe]
fn function(number: u64) -> u64 {
    number + 1
}

#[baler::probe(record = duration)]
fn timed(number: u64) -> u64 {
    number + 2
}

struct Shop;

#[baler::probe(record = events)]
impl Shop {
    fn sell(&self) -> u64 {
        1
    }

    #[baler::probe(record = aggregated)]
    fn look(&self) -> u64 {
        2
    }
}

#[test]
fn probes_name_this_crate_alone() {
    let controller = Controller::with("null:", |it| it.metadata_record(false)).unwrap();
    controller.install();
    assert_eq!(function(1) + timed(1), 5);
    assert_eq!(Shop.sell() + Shop.look(), 3);
    {
        let _probe = enter!("shop.block()");
    }
    assert!(baler::emit(&order(1)));
    let report = controller.shutdown(PATIENCE);
    assert!(report.adds_up(), "{report}");
    // A call, a duration, two events and their trace, an aggregation, a block, an order.
    assert_eq!(report.delivered(), 8, "{report}");
}

#[test]
fn a_medium_that_is_away_holds_up_no_start() {
    let controller = Controller::to("tcp://127.0.0.1:1").unwrap();
    assert!(controller.emit(&order(1)));
    let report = controller.shutdown(Duration::from_millis(200));
    assert!(report.adds_up(), "{report}");
    // The record, and the one that describes the application.
    assert_eq!((report.emitted(), report.delivered()), (2, 0));
}

/// Instructions of the calling thread, measured by callgrind: the least of three runs.
fn instructions(calls_by: &str) -> u64 {
    let program =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/examples/facade_cost");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("counted");
    let run = || {
        let run = Command::new("valgrind")
            .args(["-q", "--tool=callgrind", "--separate-threads=yes"])
            .arg("--toggle-collect=*counted_calls*")
            .arg(format!("--callgrind-out-file={}", out.display()))
            .arg(&program)
            .arg(calls_by)
            .output()
            .unwrap();
        assert!(run.status.success(), "{run:?}");
        let text = fs::read_to_string(folder.path().join("counted-01")).unwrap();
        let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
        total.unwrap().parse::<u64>().unwrap()
    };
    [run(), run(), run()].into_iter().min().unwrap()
}

#[test]
#[ignore = "needs valgrind, and before it: cargo build --release -p baler --example facade_cost"]
fn calls_by_the_facade_take_the_instructions_of_monitoring() {
    let (facade, monitoring) = (instructions("facade"), instructions("monitoring"));
    assert!(monitoring > 100_000, "{monitoring}");
    // One instruction more in each of 6,000 calls would be 6,000.
    assert!(
        facade.abs_diff(monitoring) < 1_000,
        "{facade}, {monitoring}"
    );
}
