//! A subscriber for the whole process. `tracing` then calls the layer also while the layer formats a
//! value, which it does not with the subscribers of threads in the other tests.

#![cfg(test)]

use std::fmt;
use std::time::Duration;

use baler_connector_testkit::{MemoryLimits, MemoryMedium};
use baler_monitoring::Controller;
use tracing::field::{self, Empty};
use tracing::{info, info_span};
use tracing_subscriber::layer::SubscriberExt as _;

struct Chatty;

impl fmt::Debug for Chatty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        info!("an event while a value is formatted");
        info_span!("within_debug", text = "x").in_scope(|| f.write_str("chatty"))
    }
}

#[test]
fn values_whose_text_makes_spans_and_events_do_not_hang() {
    let medium = MemoryMedium::new(MemoryLimits::default());
    let controller = Controller::builder(Box::new(medium.writer()))
        .metadata_record(false)
        .start()
        .unwrap();
    let layer = baler_tracing::layer(controller.clone());
    let lost = layer.lost();
    let subscriber = tracing_subscriber::registry().with(layer);
    tracing::subscriber::set_global_default(subscriber).unwrap();

    let span = info_span!("outer", value = ?Chatty, later = Empty);
    span.in_scope(|| {
        span.record("later", field::debug(Chatty));
        info!(value = ?Chatty, "done");
    });
    drop(span);

    let stats = controller.shutdown(Duration::from_secs(10)).stats;
    assert_eq!(stats.emitted, stats.delivered, "{stats:?}");
    // The outer span, three inner ones, three inner events and the outer one.
    assert_eq!((stats.emitted, lost.count()), (2 + 3 * 2 + 3 + 1, 0));
}
