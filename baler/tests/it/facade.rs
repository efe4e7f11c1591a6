//! Calls through this crate run the code of `monitoring`, with the same types and functions.

use std::any::TypeId;
use std::ptr;
use std::time::Duration;

use baler::{Controller, enter};

use crate::support::{Order, PATIENCE, one_at_a_time, order};

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
    let _alone = one_at_a_time();
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
