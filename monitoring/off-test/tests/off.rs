//! Nothing is recorded, and nothing is left in the program.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use baler_connector_null::{NullConfig, NullWriter};
use baler_monitoring::{Controller, TraceContext};
use baler_off_test::{SIZES, probed, request, task, whole};

fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits for nothing"),
    }
}

#[test]
fn every_kind_of_probe_runs_and_records_nothing() {
    let writer = Box::new(NullWriter::new(NullConfig::default()));
    let builder = Controller::builder(writer).metadata_record(false);
    let controller = builder.start().unwrap();
    controller.install();
    for number in 0..10 {
        let of_every_kind = [
            probed::operation(number),
            probed::duration(number),
            probed::aggregated(number),
            probed::sampled(number),
            ready(probed::later(number)),
            probed::block(number),
        ];
        assert_eq!(of_every_kind, [number + 1; 6]);
    }
    assert_eq!((whole::Till.open(), whole::Till.count()), (1, 2));
    let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    assert_eq!(request(&header.parse().unwrap()), None);
    assert_eq!(ready(task()), 2);
    assert_eq!(TraceContext::current().trace_id(), None);
    controller.flush(Duration::from_secs(10)).unwrap();
    let report = controller.shutdown(Duration::from_secs(10));
    assert_eq!((report.stats.emitted, report.stats.delivered), (0, 0));
}

#[test]
fn guards_and_contexts_have_no_size() {
    assert_eq!(SIZES, [0, 0, 0]);
}

#[test]
fn a_future_is_as_large_as_without_a_probe() {
    async fn plain(number: u64) -> u64 {
        number + 1
    }
    assert_eq!(size_of_val(&probed::later(1)), size_of_val(&plain(1)));
}
