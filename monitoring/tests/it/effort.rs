//! How much is spent on small chunks, by how far the collector is behind.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use baler_common::container::{
    ChunkHeader, ChunkSerializer, Effort, EncodeError, NativeSerializer,
};
use baler_common::record::RecordBatch;
use baler_common::transport::ContainerKind;
use baler_monitoring::Controller;

use crate::support::{Medium, Mode, PATIENCE, await_that, beat, plain};

const QUEUE_BYTES: usize = 1 << 16;

/// Notes the effort of each chunk; stands still at the first one until the test lets it go.
struct Noting {
    efforts: Arc<Mutex<Vec<Effort>>>,
    effort: Effort,
    gate: Option<(Sender<()>, Receiver<()>)>,
    native: NativeSerializer,
}

impl ChunkSerializer for Noting {
    fn container(&self) -> ContainerKind {
        ContainerKind::Native
    }

    fn set_effort(&mut self, effort: Effort) {
        self.effort = effort;
        self.native.set_effort(effort);
    }

    fn serialize(
        &mut self,
        batch: &RecordBatch,
        header: &ChunkHeader,
        out: &mut Vec<u8>,
    ) -> Result<usize, EncodeError> {
        if let Some((here, go)) = self.gate.take() {
            here.send(()).unwrap();
            go.recv_timeout(PATIENCE).unwrap();
        }
        self.efforts.lock().unwrap().push(self.effort);
        self.native.serialize(batch, header, out)
    }
}

/// A controller whose collector stands still with its first chunk, behind it three quarters of a
/// full queue.
struct Stand {
    controller: Controller,
    efforts: Arc<Mutex<Vec<Effort>>>,
    go: Sender<()>,
}

impl Stand {
    fn new(medium: &Medium, window: usize) -> Self {
        let efforts = Arc::new(Mutex::new(Vec::new()));
        let (here, is_here) = channel();
        let (go, gate) = channel();
        let controller = plain(medium.writer(window))
            .queue_bytes(QUEUE_BYTES)
            .chunk_records(8)
            .unconfirmed_chunks(4)
            .serializer(Noting {
                efforts: Arc::clone(&efforts),
                effort: Effort::default(),
                gate: Some((here, gate)),
                native: NativeSerializer::default(),
            })
            .start()
            .unwrap();
        (0..8).for_each(|number| assert!(controller.emit(&beat(0, number))));
        is_here.recv_timeout(PATIENCE).unwrap();
        let mut number = 8;
        while controller.stats().queue_bytes < QUEUE_BYTES / 4 * 3 {
            assert!(controller.emit(&beat(0, number)));
            number += 1;
        }
        Self {
            controller,
            efforts,
            go,
        }
    }

    fn efforts(&self) -> Vec<Effort> {
        self.efforts.lock().unwrap().clone()
    }
}

#[test]
fn chunks_are_cheap_until_a_backlog_is_worked_off() {
    let medium = Medium::new(Mode::Prompt);
    let stand = Stand::new(&medium, 4);
    stand.go.send(()).unwrap();
    stand.controller.flush(PATIENCE).unwrap();
    let efforts = stand.efforts();
    let are_fast: Vec<bool> = efforts.iter().map(|it| *it == Effort::Fast).collect();
    assert_eq!(are_fast.first(), Some(&false));
    assert_eq!(are_fast.get(1), Some(&true));
    assert_eq!(are_fast.last(), Some(&false));
    let changes = are_fast
        .windows(2)
        .filter(|pair| pair[0] != pair[1])
        .count();
    assert_eq!(changes, 2, "{efforts:?}");
    let report = stand.controller.shutdown(PATIENCE);
    assert_eq!(report.dropped().total(), 0, "{report}");
}

#[test]
fn chunks_are_small_behind_a_medium_that_is_slow() {
    let medium = Medium::new(Mode::Held);
    let stand = Stand::new(&medium, 1);
    stand.go.send(()).unwrap();
    await_that("a full outbox", || stand.efforts().len() == 4);
    // The second chunk found a medium that had taken all there was.
    let efforts = stand.efforts();
    assert!(!efforts[2..].contains(&Effort::Fast), "{efforts:?}");
    medium.set_mode(Mode::Prompt);
    medium.confirm(1);
    let report = stand.controller.shutdown(PATIENCE);
    assert_eq!(report.dropped().total(), 0, "{report}");
}
