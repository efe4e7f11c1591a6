//! A monitored application that is built without the feature `enable`. It has every kind of probe,
//! compiles, and behaves as without probes.

use baler_common::record::Record;
use baler_monitoring::{
    Attached, Controller, Guard, TraceContext, TraceParent, emit, enter, in_trace, probe,
};

/// The application's own record.
#[derive(Debug, Record)]
#[record(name = "off.Beat")]
pub struct Beat {
    pub number: u64,
    pub text: String,
}

/// Emits a record in every possible way; returns whether one was accepted.
pub fn emitted(controller: &Controller, beat: &Beat) -> bool {
    emit(beat) | controller.emit(beat)
}

/// Probed functions of every kind.
pub mod probed {
    use super::*;

    #[probe]
    pub fn operation(number: u64) -> u64 {
        number + 1
    }

    #[probe(record = duration, full = 1/2)]
    pub fn duration(number: u64) -> u64 {
        number + 1
    }

    #[probe(record = aggregated, histogram)]
    pub fn aggregated(number: u64) -> u64 {
        number + 1
    }

    #[probe(sample = 1/2, name = "off.sampled()")]
    pub fn sampled(number: u64) -> u64 {
        number + 1
    }

    #[probe]
    pub async fn later(number: u64) -> u64 {
        number + 1
    }

    #[probe(record = events, err)]
    pub fn events(number: u64) -> Result<u64, String> {
        Ok(number + 1)
    }

    #[probe(busy)]
    pub async fn busy(number: u64) -> u64 {
        number + 1
    }

    pub fn block(number: u64) -> u64 {
        let _probe = enter!("off.block()");
        let _probe = enter!("off.hot()", record = aggregated, full = 1 / 9, histogram);
        let _probe = enter!("off.seldom()", sample = 1 / 9);
        let mut probe = enter!("off.events()", record = events);
        probe.fail("nothing");
        number + 1
    }
}

/// Without the name `probe` in scope.
#[baler_monitoring::probe]
pub mod whole {
    pub struct Till;

    impl Till {
        pub fn open(&self) -> u64 {
            self.shut()
        }

        #[probe(skip)]
        fn shut(&self) -> u64 {
            1
        }

        #[probe(record = duration)]
        pub fn count(&self) -> u64 {
            2
        }
    }
}

/// Guards and contexts have no size.
pub const SIZES: [usize; 3] = [
    size_of::<Guard>(),
    size_of::<Attached>(),
    size_of::<TraceContext>(),
];

/// The context of a request, as with the feature.
pub fn request(parent: &TraceParent) -> Option<TraceParent> {
    let _attached = TraceContext::continuing(parent).attach();
    probed::operation(1);
    TraceContext::current().traceparent()
}

/// A task in a trace, as with the feature.
pub async fn task() -> u64 {
    in_trace(TraceContext::current(), probed::later(1)).await
}
