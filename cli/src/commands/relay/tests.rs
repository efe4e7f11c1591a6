use std::sync::Arc;

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, DeliveryReport, Notify, Probes, Rejected,
    TransportError,
};
use baler_connector_testkit::{ChunkSource, MemoryMedium, MemoryWriter, Pump, within_patience};

use super::*;
use crate::args::ObserveArgs;

#[test]
fn chunks_that_the_medium_refused_after_they_were_spooled_are_no_success() {
    let stats = RelayStats::default();
    let mut spool = SpoolStatus::default();
    assert_eq!(code(&stats, Some(&spool)), Code::Done);
    spool.refused_records = 1;
    assert_eq!(code(&stats, Some(&spool)), Code::Data);
}

/// Panics when a chunk is offered first.
struct Panics {
    inner: MemoryWriter,
    has_panicked: bool,
}

impl ChunkWriter for Panics {
    fn capability(&self) -> &Capability {
        self.inner.capability()
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        let has_panicked = std::mem::replace(&mut self.has_panicked, true);
        assert!(has_panicked, "the first chunk");
        self.inner.offer(chunk)
    }

    fn delivery_reports(&mut self, out: &mut Vec<DeliveryReport>) -> Result<(), TransportError> {
        self.inner.delivery_reports(out)
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.inner.set_notify(notify);
    }

    fn set_probes(&mut self, probes: Arc<dyn Probes>) {
        self.inner.set_probes(probes);
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        self.inner.reopen(by)
    }

    fn close(self: Box<Self>, by: Instant) -> CloseReport {
        Box::new(self.inner).close(by)
    }
}

#[test]
fn a_panic_ends_a_relay_whose_source_has_no_end() {
    let (from, to) = (MemoryMedium::default(), MemoryMedium::default());
    let mut pump = Pump::open(Box::new(from.writer()));
    pump.push(ChunkSource::new(1).take(2));
    within_patience("the source has chunks", || {
        pump.step();
        pump.is_done().then_some(())
    });
    let target = Panics {
        inner: to.writer(),
        has_panicked: false,
    };
    let reader = Box::new(from.reader());
    let passage = Passage {
        relay: Relay::new(reader, Box::new(target), relay::settings()),
        from: "from".to_owned(),
        to: "to".to_owned(),
        spool: None,
        stop: Stop::default(),
        give_up: None,
    };
    let shutdown = Shutdown::new(Duration::from_secs(3_600));
    shutdown.request_on_panic();
    let args = ObserveArgs {
        metrics: None,
        metrics_port_file: None,
        metrics_file: None,
        metrics_tap: None,
        ready_age: Duration::from_secs(1),
    };
    let observation = Observation::start(&args, "relay", &shutdown, true).unwrap();
    let (document, _) = passage.run(&observation, true, &shutdown);
    drop(std::panic::take_hook());
    assert!(shutdown.has_panicked());
    assert_eq!(document["ended_by"], "error");
    // The copy that was offered again is confirmed, and only then acknowledged.
    let forwarded = document["forwarded"].as_u64().unwrap();
    assert_eq!(u64::try_from(to.len()).unwrap(), forwarded);
    let received = document["received"].as_u64().unwrap();
    let given_back = document["given_back"].as_u64().unwrap();
    assert_eq!(received, forwarded + given_back);
}
