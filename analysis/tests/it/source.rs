//! The source: settle after processing, duplicates, poison, errors.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use baler_analysis::workers::Group;
use baler_analysis::{AnalysisError, Pipe, Progress, Source, Step, Stop};
use baler_common::container::{ChunkHeader, LossReason};
use baler_common::transport::{
    ChunkReader, Delivery, Order, Origin, ReaderCapability, ReaderCloseReport, Received,
    RetryClass, Settled, Token, TransportError, Verdict,
};
use baler_connector_file::quarantine::QuarantineFolder;
use baler_connector_file::quarantine::{Poison, PutAside, Quarantine};
use baler_connector_testkit::PATIENCE;
use bytes::Bytes;

use crate::support::{Play, Scripted, chunk, encode, identity, keep_all, keep_by, numbered};

fn play(sequences: impl IntoIterator<Item = u64>) -> Vec<Play> {
    sequences
        .into_iter()
        .map(|sequence| Play::Chunk(chunk(sequence)))
        .collect()
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

#[test]
fn every_chunk_is_acknowledged_after_processing() {
    let (reader, verdicts) = Scripted::new(play(0..500));
    let mut source = Source::new(reader).with_demand(8);
    let (mut stage, numbers) = keep_all();
    source.run(&mut stage, Stop::default(), |_| true).unwrap();
    let report = source.close(soon()).unwrap();
    assert_eq!(*numbers.lock().unwrap(), (0..500).collect::<Vec<i64>>());
    assert_eq!(
        (report.chunks, report.records, report.acknowledged),
        (500, 500, 500)
    );
    assert!(
        verdicts
            .lock()
            .unwrap()
            .iter()
            .all(|(_, verdict)| *verdict == Verdict::Ack)
    );
    assert!(report.gaps.is_empty());
}

#[test]
fn chunks_outside_the_wanted_time_are_settled_and_not_decoded() {
    let always = i64::MIN..i64::MAX;
    for (span, passed) in [(3..5, 2), (20..30, 0), (always, 10)] {
        let (reader, verdicts) = Scripted::new(play(0..10));
        let mut source = Source::new(reader).with_time_span(Some(span));
        let (mut stage, numbers) = keep_all();
        source.run(&mut stage, Stop::default(), |_| true).unwrap();
        let report = source.close(soon()).unwrap();
        assert_eq!(numbers.lock().unwrap().len(), passed);
        assert_eq!(report.chunks + report.outside_time, 10);
        assert_eq!(report.chunks, passed as u64);
        assert_eq!(verdicts.lock().unwrap().len(), 10);
        assert!(report.gaps.is_empty());
    }
}

#[test]
fn a_parcel_that_is_held_is_not_settled() {
    let (reader, verdicts) = Scripted::new(play([0]));
    let mut source = Source::new(reader);
    let Step::Chunk(parcel) = source.step(soon()).unwrap() else {
        panic!("a chunk was played")
    };
    let copy = parcel.clone();
    drop(parcel);
    assert!(matches!(source.step(soon()).unwrap(), Step::Idle));
    assert!(verdicts.lock().unwrap().is_empty());
    drop(copy);
    assert!(matches!(source.step(soon()).unwrap(), Step::End));
    assert_eq!(verdicts.lock().unwrap().len(), 1);
}

#[test]
fn a_copy_with_fewer_fields_has_all_records_and_holds_the_delivery() {
    let (reader, verdicts) = Scripted::new(play([0]));
    let mut source = Source::new(reader);
    let Step::Chunk(parcel) = source.step(soon()).unwrap() else {
        panic!("a chunk was played")
    };
    let narrowed = parcel.narrowed(|_, _| false);
    assert_eq!(narrowed.identity(), parcel.identity());
    assert!(!parcel.is_empty());
    assert_eq!(narrowed.len(), parcel.len());
    for ((_, narrow), (_, wide)) in narrowed.records().zip(parcel.records()) {
        assert_eq!(narrow.type_name(), wide.type_name());
        assert_eq!(narrow.timestamp(), wide.timestamp());
        assert_eq!(narrow.fields().values().count(), 0);
    }
    drop(parcel);
    assert!(matches!(source.step(soon()).unwrap(), Step::Idle));
    assert!(verdicts.lock().unwrap().is_empty());
    narrowed.fail();
    drop(narrowed);
    source.step(soon()).unwrap();
    let verdicts = verdicts.lock().unwrap();
    let verdicts: Vec<_> = verdicts.iter().map(|(_, verdict)| *verdict).collect();
    assert_eq!(verdicts, [Verdict::Retry]);
}

#[test]
fn duplicates_are_dropped_and_counted_and_gaps_are_told() {
    let (reader, _) = Scripted::new(play([0, 1, 1, 0, 2, 5, 2]));
    // One at a time: otherwise a copy may wait for the first one's verdict, which is also correct.
    let mut source = Source::new(reader).with_demand(1);
    let (mut stage, numbers) = keep_all();
    source.run(&mut stage, Stop::default(), |_| true).unwrap();
    let report = source.close(soon()).unwrap();
    assert_eq!(*numbers.lock().unwrap(), [0, 1, 2, 5]);
    assert_eq!(report.duplicates, 3);
    let gaps: Vec<_> = report
        .gaps
        .iter()
        .map(|gap| (gap.first_sequence, gap.chunks))
        .collect();
    assert_eq!(gaps, [(3, 2)]);
}

/// Earlier readers settled chunks up to 4, and the medium has removed 5 to 8.
#[test]
fn chunks_missing_after_those_of_earlier_readers_are_a_gap() {
    for (settled, gaps, starts) in [
        (Some(4), vec![(5, 4)], vec![]),
        (Some(8), vec![], vec![]),
        // A copy of a chunk comes again.
        (Some(30), vec![], vec![]),
        (None, vec![], vec![9]),
    ] {
        let group = Group::new();
        let before = settled.map(|last| Play::SettledBefore(identity(last)));
        let (reader, _) = Scripted::new(before.into_iter().chain(play(9..12)));
        let mut source = Source::new(reader).in_group(&group);
        let (mut stage, _) = keep_all();
        source.run(&mut stage, Stop::default(), |_| true).unwrap();
        for report in [source.close(soon()).unwrap(), group.report().total] {
            let found = report.gaps.iter();
            let found: Vec<_> = found.map(|it| (it.first_sequence, it.chunks)).collect();
            assert_eq!(found, gaps, "{settled:?}");
            let found: Vec<_> = report.starts.iter().map(|it| it.sequence).collect();
            assert_eq!(found, starts, "{settled:?}");
            assert_eq!((report.duplicates, report.lanes), (0, 1), "{settled:?}");
        }
    }
}

#[test]
fn copies_and_damage_are_no_silence() {
    let damaged = || Play::Damaged(Bytes::from_static(b"BALR?"));
    let mut script = play([0, 0, 0, 1]);
    script.extend([damaged(), damaged()]);
    script.extend(play([2]));
    let (reader, _) = Scripted::new(script);
    let mut source = Source::new(reader).with_demand(1);
    let (mut stage, numbers) = keep_all();
    let mut stop = Stop::default();
    stop.idle_timeout = Some(Duration::ZERO);
    source.run(&mut stage, stop, |_| true).unwrap();
    assert_eq!(*numbers.lock().unwrap(), [0, 1, 2]);
}

#[test]
fn a_failed_chunk_comes_again_and_is_no_duplicate() {
    let (reader, verdicts) = Scripted::new(play(0..3));
    let mut source = Source::new(reader);
    let attempts = Arc::new(AtomicUsize::new(0));
    let tries = Arc::clone(&attempts);
    let (mut failing, numbers) = keep_by(move |number| match number {
        1 if tries.fetch_add(1, Ordering::SeqCst) == 0 => {
            Err(AnalysisError::stage("test", "the first time it fails"))
        }
        _ => Ok(()),
    });
    let error = source
        .run(&mut failing, Stop::default(), |_| true)
        .unwrap_err();
    assert!(error.to_string().contains("the first time it fails"));
    assert_eq!(verdicts.lock().unwrap().last().unwrap().1, Verdict::Retry);
    source.run(&mut failing, Stop::default(), |_| true).unwrap();
    let mut seen = numbers.lock().unwrap().clone();
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2]);
    assert_eq!(source.report().duplicates, 0);
}

/// Like a connection whose sender has filled its window: after the first chunk nothing arrives
/// until that chunk is settled, and nothing wakes the reader then.
struct WindowOfOne {
    capability: ReaderCapability,
    chunk: Option<Bytes>,
    settled: bool,
    /// Gets a message when the reader begins to wait.
    waits: Sender<()>,
}

impl ChunkReader for WindowOfOne {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, _chunks: usize) {}

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        if let Some(bytes) = self.chunk.take() {
            return Ok(Received::Chunk(Delivery {
                token: Token(0),
                bytes,
                meta: None,
                origin: Origin {
                    endpoint: "window:".into(),
                    lane: "0".into(),
                    position: 0,
                },
                redelivered: false,
                attempts: 0,
            }));
        }
        if self.settled {
            return Ok(Received::End);
        }
        self.waits.send(()).ok();
        std::thread::park_timeout(by.saturating_duration_since(Instant::now()));
        Ok(Received::Idle)
    }

    fn settle(&mut self, _token: Token, _verdict: Verdict) -> Result<Settled, TransportError> {
        self.settled = true;
        Ok(Settled::Done)
    }

    fn close(self: Box<Self>, _by: Instant) -> ReaderCloseReport {
        ReaderCloseReport::default()
    }
}

/// A quarantine that keeps poison messages only when the reader waits.
struct Slow(Receiver<()>);

impl Quarantine for Slow {
    fn put_aside(&mut self, _poison: Poison<'_>) -> std::io::Result<PutAside> {
        self.0.recv().map_err(std::io::Error::other)?;
        Ok(PutAside::Kept)
    }
}

#[test]
fn what_others_are_done_with_is_settled_while_the_reader_waits() {
    for poison in [true, false] {
        let (waits, reader_waits) = channel();
        let reader = WindowOfOne {
            capability: ReaderCapability::new("window", Order::PerLane),
            chunk: Some(if poison { "GET /".into() } else { chunk(0) }),
            settled: false,
            waits,
        };
        let mut source = Source::new(Box::new(reader));
        let far = Instant::now() + PATIENCE;
        let mut other = None;
        if poison {
            source = source.with_quarantine(Slow(reader_waits));
            assert!(matches!(source.step(far).unwrap(), Step::Idle));
        } else {
            let parcel = source.step(far).unwrap();
            let let_go = move || reader_waits.recv().map(|()| drop(parcel));
            other = Some(std::thread::spawn(let_go));
        }
        assert!(matches!(source.step(far).unwrap(), Step::End));
        assert!(Instant::now() < far, "the reader was waited for");
        if let Some(other) = other {
            other.join().unwrap().unwrap();
        }
    }
}

#[test]
fn poison_is_kept_byte_for_byte_and_the_stream_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut flipped = chunk(1).to_vec();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x10;
    let script = vec![
        Play::Chunk(chunk(0)),
        Play::Chunk(flipped.clone().into()),
        Play::Chunk(Bytes::from_static(b"GET / HTTP/1.1")),
        Play::Damaged(Bytes::from_static(b"half a chunk")),
        Play::Chunk(chunk(2)),
    ];
    let (reader, verdicts) = Scripted::new(script);
    let mut source = Source::new(reader).with_quarantine(QuarantineFolder::new(folder.path()));
    let (mut stage, numbers) = keep_all();
    source.run(&mut stage, Stop::default(), |_| true).unwrap();
    assert_eq!(*numbers.lock().unwrap(), [0, 2]);
    assert_eq!(source.report().quarantined, 3);
    let rejected = verdicts
        .lock()
        .unwrap()
        .iter()
        .filter(|it| it.1 == Verdict::Reject)
        .count();
    assert_eq!(rejected, 2);
    let mut kept: Vec<Vec<u8>> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "chunk")
        })
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    kept.sort();
    let mut expected = vec![
        flipped,
        b"GET / HTTP/1.1".to_vec(),
        b"half a chunk".to_vec(),
    ];
    expected.sort();
    assert_eq!(kept, expected);
}

struct Panicking;

impl Quarantine for Panicking {
    fn put_aside(&mut self, _poison: Poison<'_>) -> std::io::Result<PutAside> {
        panic!("no quarantine")
    }
}

#[test]
fn poison_that_cannot_be_kept_is_given_back() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let folder = QuarantineFolder::new(file.path());
    let quarantines: [Box<dyn Quarantine>; 2] = [Box::new(folder), Box::new(Panicking)];
    for quarantine in quarantines {
        let (reader, verdicts) = Scripted::new([Play::Chunk(Bytes::from_static(b"poison"))]);
        let mut source = Source::new(reader).with_quarantine(quarantine);
        let (mut stage, _) = keep_all();
        let ran = source.run(&mut stage, Stop::default(), |_| true);
        let error = ran.unwrap_err();
        assert!(matches!(error, AnalysisError::Quarantine { .. }), "{error}");
        assert_eq!(verdicts.lock().unwrap()[0].1, Verdict::Retry);
    }
}

#[test]
fn errors_of_the_medium_end_the_source_only_when_they_are_final() {
    let error = |class| Play::Error(TransportError::new("read from", "script:", class, "gone"));
    let (reader, _) = Scripted::new([
        error(RetryClass::Retry),
        Play::Chunk(chunk(0)),
        error(RetryClass::Final),
    ]);
    let mut source = Source::new(reader);
    let (mut stage, numbers) = keep_all();
    let failure = source
        .run(&mut stage, Stop::default(), |_| true)
        .unwrap_err();
    assert!(matches!(failure, AnalysisError::Transport(_)));
    assert_eq!(*numbers.lock().unwrap(), [0]);
    assert_eq!(source.report().transport_errors, 1);
}

#[test]
fn a_pipe_settles_what_its_thread_processed() {
    let (reader, verdicts) = Scripted::new(play(0..300));
    let mut source = Source::new(reader).with_demand(16);
    let (stage, numbers) = keep_all();
    let mut pipe = Pipe::spawn(4, stage).unwrap();
    source.run(&mut pipe, Stop::default(), |_| true).unwrap();
    source.close(soon()).unwrap();
    assert_eq!(numbers.lock().unwrap().len(), 300);
    assert_eq!(verdicts.lock().unwrap().len(), 300);
}

#[test]
fn an_error_behind_a_pipe_is_reported_and_nothing_in_it_is_acknowledged() {
    for panics in [false, true] {
        let (reader, verdicts) = Scripted::new(play(0..50));
        let mut source = Source::new(reader.endless()).with_demand(16);
        let (stage, numbers) = keep_by(move |number| match number {
            20 if panics => panic!("twenty"),
            20 => Err(AnalysisError::stage("test", "twenty")),
            _ => Ok(()),
        });
        let mut pipe = Pipe::spawn(4, stage).unwrap();
        let error = source
            .run(&mut pipe, Stop::default(), |_| true)
            .unwrap_err();
        assert!(error.to_string().contains("twenty"), "{error}");
        drop(pipe);
        source.close(soon()).unwrap();
        let acknowledged = verdicts
            .lock()
            .unwrap()
            .iter()
            .filter(|it| it.1 == Verdict::Ack)
            .count();
        assert!(acknowledged <= 20, "{acknowledged} acknowledged");
        assert_eq!(numbers.lock().unwrap().len(), 20);
    }
}

#[test]
fn a_stage_that_never_ends_is_left_behind_at_the_deadline_and_its_chunks_go_back() {
    let (reader, verdicts) = Scripted::new(play(0..50));
    let mut source = Source::new(reader.endless()).with_demand(16);
    let watch = source.watch();
    let (open, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let (stage, numbers) = keep_by(move |number| {
        if number == 5 {
            // Until the test is over.
            gate.lock().unwrap().recv().ok();
        }
        Ok(())
    });
    let progress = Progress::default();
    let asked = Arc::new(AtomicBool::new(false));
    let is_asked = Arc::clone(&asked);
    let pipe = Pipe::watched(4, stage, progress.clone()).unwrap();
    let mut pipe = pipe.until(move || is_asked.load(Ordering::Acquire).then(Instant::now));
    let end = Instant::now() + Duration::from_secs(60);
    let error = source
        .run(&mut pipe, Stop::default(), |_| {
            assert!(Instant::now() < end, "{:?}", watch.report());
            // The figures are true although the stage takes nothing: five are processed, one is
            // being processed, and the pipe is full.
            let report = watch.report();
            let is_stalled = progress.stalled() > Duration::from_millis(100);
            let is_seen = (report.acknowledged, report.chunks, report.in_work) == (5, 9, 4);
            let over = is_stalled && is_seen;
            asked.store(over, Ordering::Release);
            !over
        })
        .unwrap_err();
    assert!(matches!(error, AnalysisError::Stalled { .. }), "{error}");
    assert_eq!(progress.waiting(), 4);
    drop(pipe);
    let report = source.close(soon()).unwrap();
    assert_eq!((report.acknowledged, report.given_back), (5, 4));
    assert_eq!((report.chunks, report.in_work), (9, 0));
    assert_eq!(verdicts.lock().unwrap().len(), 5);
    assert_eq!(*numbers.lock().unwrap(), [0, 1, 2, 3, 4]);
    drop(open);
}

#[test]
fn the_idle_timeout_ends_an_endless_source() {
    let (reader, _) = Scripted::new(play(0..3));
    let mut source = Source::new(reader.endless());
    let (mut stage, numbers) = keep_all();
    let mut stop = Stop::default();
    stop.idle_timeout = Some(Duration::from_millis(20));
    source.run(&mut stage, stop, |_| true).unwrap();
    assert_eq!(numbers.lock().unwrap().len(), 3);
}

#[test]
fn the_idle_timeout_counts_from_the_end_of_the_medium() {
    let join = Play::Joins(Duration::from_millis(400));
    let (reader, _) = Scripted::new(std::iter::once(join).chain(play(0..3)));
    let mut source = Source::new(reader.endless());
    let (mut stage, numbers) = keep_all();
    let mut stop = Stop::default();
    stop.idle_timeout = Some(Duration::from_millis(20));
    source.run(&mut stage, stop, |_| true).unwrap();
    assert_eq!(numbers.lock().unwrap().len(), 3);
}

#[test]
fn what_the_medium_owes_is_shown_until_something_comes() {
    let error = TransportError::new("connect to", "script:", RetryClass::Retry, "away");
    let far = Duration::from_secs(3_600);
    let script = [Play::Error(error), Play::Chunk(chunk(0)), Play::Joins(far)];
    let (reader, _) = Scripted::new(script);
    let mut source = Source::new(reader.endless()).with_demand(1);
    let watch = source.watch();
    source.step(soon()).unwrap();
    let waiting = watch.report().waiting;
    assert!(waiting.since().is_some());
    assert!(waiting.error().unwrap().to_string().contains("away"));
    let Step::Chunk(parcel) = source.step(soon()).unwrap() else {
        panic!("no chunk came")
    };
    assert!(watch.report().waiting.since().is_none());
    // The chunk in work is the only one that the source may have: it waits for its stages.
    let shortly = || Instant::now() + Duration::from_millis(5);
    source.step(shortly()).unwrap();
    assert!(watch.report().waiting.since().is_none());
    drop(parcel);
    source.step(shortly()).unwrap();
    assert_eq!(watch.report().waiting.what(), Some("its part"));
}

#[test]
fn losses_that_the_producer_tells_are_reported() {
    let mut header = ChunkHeader::new(identity(0));
    header.losses.add(LossReason::QueueFullNewest, 41);
    header.last_of_epoch = true;
    let (reader, _) = Scripted::new([Play::Chunk(encode(&header, &[numbered(1)]))]);
    let mut source = Source::new(reader);
    let (mut stage, _) = keep_all();
    source.run(&mut stage, Stop::default(), |_| true).unwrap();
    let report = source.report();
    assert_eq!(report.producer_losses.get(LossReason::QueueFullNewest), 41);
    assert_eq!((report.lanes, report.complete_lanes), (1, 1));
}

#[test]
fn a_watch_shows_the_figures_to_other_threads() {
    let mut script = vec![Play::Assigned(&["0", "1"])];
    script.extend(play(0..3));
    script.push(Play::Revoked(&["1"]));
    let (reader, _) = Scripted::new(script);
    let mut source = Source::new(reader.endless());
    let watch = source.watch();
    assert_eq!((watch.report().chunks, watch.report().assigned), (0, None));
    assert_eq!(watch.report().reader.total_lag(), Some(5));
    let seen = std::thread::spawn(move || {
        let end = Instant::now() + Duration::from_secs(60);
        while watch.report().acknowledged < 3 {
            assert!(Instant::now() < end, "{:?}", watch.report());
            std::thread::yield_now();
        }
        watch
    });
    let (mut stage, _) = keep_all();
    source
        .run(&mut stage, Stop::default(), |_| !seen.is_finished())
        .unwrap();
    let watch = seen.join().unwrap();
    let shown = watch.report();
    assert_eq!(
        (shown.chunks, shown.in_work, shown.assigned),
        (3, 0, Some(1))
    );
    let report = source.close(soon()).unwrap();
    assert_eq!(watch.report().acknowledged, report.acknowledged);
    assert_eq!(report.reader.total_lag(), Some(0));
}

#[test]
fn a_chunk_with_the_identity_of_another_is_put_aside() {
    let forged = |sequence| {
        let header = ChunkHeader::new(identity(sequence));
        Play::Chunk(encode(&header, &[numbered(100)]))
    };
    // The forged chunks come first, together with the true ones, and last.
    for demand in [1, 64] {
        let mut script = vec![forged(0), forged(1)];
        script.extend(play([0, 1, 2, 3, 3]));
        script.extend([forged(2), forged(3)]);
        let (reader, verdicts) = Scripted::new(script);
        let mut source = Source::new(reader).with_demand(demand);
        let (mut stage, numbers) = keep_all();
        source.run(&mut stage, Stop::default(), |_| true).unwrap();
        let report = source.close(soon()).unwrap();
        assert_eq!(*numbers.lock().unwrap(), [100, 100, 2, 3], "{demand}");
        assert_eq!(report.duplicates, 1);
        assert_eq!((report.quarantined, report.conflicts), (4, 4));
        let verdicts = verdicts.lock().unwrap();
        let of = |wanted| verdicts.iter().filter(|(_, it)| *it == wanted).count();
        assert_eq!(of(Verdict::Reject), 4);
        assert_eq!(of(Verdict::Ack), 5);
    }
}

/// A queue that delivers all its chunks at once, and counts attempts of each chunk when the reader
/// dies.
#[derive(Clone, Default)]
struct Counting(Arc<Mutex<VecDeque<(u64, u32)>>>);

struct CountingReader {
    queue: Counting,
    capability: ReaderCapability,
    demand: usize,
    handed_out: VecDeque<(u64, u32)>,
}

impl ChunkReader for CountingReader {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, chunks: usize) {
        self.demand = chunks;
    }

    fn receive(&mut self, _by: Instant) -> Result<Received, TransportError> {
        if self.handed_out.len() >= self.demand {
            return Ok(Received::Idle);
        }
        let Some((sequence, attempts)) = self.queue.0.lock().unwrap().pop_front() else {
            return Ok(Received::End);
        };
        self.handed_out.push_back((sequence, attempts));
        Ok(Received::Chunk(Delivery {
            token: Token(sequence),
            bytes: chunk(sequence),
            meta: None,
            origin: Origin {
                endpoint: "counting:".into(),
                lane: "0".into(),
                position: sequence,
            },
            redelivered: attempts > 0,
            attempts,
        }))
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        let mut entries = self.handed_out.iter();
        let place = entries.position(|(sequence, _)| *sequence == token.0);
        let entry = self.handed_out.remove(place.unwrap()).unwrap();
        if verdict == Verdict::Retry {
            self.queue.0.lock().unwrap().push_back(entry);
        }
        Ok(Settled::Done)
    }

    fn close(self: Box<Self>, _by: Instant) -> ReaderCloseReport {
        ReaderCloseReport::default()
    }
}

impl Drop for CountingReader {
    fn drop(&mut self) {
        let mut queue = self.queue.0.lock().unwrap();
        for entry in self.handed_out.drain(..).rev() {
            queue.push_front(entry);
        }
        queue.iter_mut().for_each(|(_, attempts)| *attempts += 1);
    }
}

/// Keeps the positions and reasons of poison messages.
#[derive(Clone, Default)]
struct Reasons(Arc<Mutex<Vec<(u64, String)>>>);

impl Quarantine for Reasons {
    fn put_aside(&mut self, poison: Poison<'_>) -> std::io::Result<PutAside> {
        let entry = (poison.origin.position, poison.reason.to_owned());
        self.0.lock().unwrap().push(entry);
        Ok(PutAside::Kept)
    }
}

/// Processes chunks, several at a time, and dies at chunk 20; returns whether it died.
fn live(queue: &Counting, reasons: &Reasons, processed: &mut Vec<u64>) -> bool {
    let reader = Box::new(CountingReader {
        queue: queue.clone(),
        capability: ReaderCapability::new("counting", Order::PerLane),
        demand: 1,
        handed_out: VecDeque::new(),
    });
    let mut source = Source::new(reader)
        .with_demand(8)
        .with_quarantine(reasons.clone())
        .with_max_attempts(NonZeroU32::new(5));
    let mut held = Vec::new();
    loop {
        match source.step(soon()).unwrap() {
            Step::Chunk(parcel) => {
                let sequence = parcel.identity().unwrap().sequence;
                if sequence == 20 {
                    // Chunks in work die with it.
                    held.iter().for_each(baler_analysis::Parcel::fail);
                    drop(source);
                    return true;
                }
                held.push(parcel);
            }
            Step::Idle => {
                // No more arrive before these are settled.
                let sequences = held.iter().map(|it| it.identity().unwrap().sequence);
                processed.extend(sequences);
                held.clear();
            }
            Step::End if held.is_empty() => return false,
            Step::End => held.clear(),
        }
    }
}

#[test]
fn a_chunk_that_kills_its_consumer_is_put_aside_and_no_other_one() {
    let queue = Counting::default();
    queue.0.lock().unwrap().extend((0..60).map(|it| (it, 0)));
    let (reasons, mut processed) = (Reasons::default(), Vec::new());
    let deaths = (0..9).take_while(|_| live(&queue, &reasons, &mut processed));
    assert_eq!(deaths.count(), 5);
    let reasons = reasons.0.lock().unwrap();
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert_eq!(reasons[0].0, 20);
    assert!(reasons[0].1.contains("5 times before"), "{reasons:?}");
    assert!((0..20).chain(21..60).all(|it| processed.contains(&it)));
}

#[test]
fn a_chunk_that_is_given_back_too_often_is_put_aside_with_the_last_reason() {
    let queue = Counting::default();
    queue.0.lock().unwrap().extend((0..6).map(|it| (it, 0)));
    let reasons = Reasons::default();
    let reader = Box::new(CountingReader {
        queue,
        capability: ReaderCapability::new("counting", Order::PerLane),
        demand: 1,
        handed_out: VecDeque::new(),
    });
    let mut source = Source::new(reader)
        .with_quarantine(reasons.clone())
        .with_max_attempts(NonZeroU32::new(3));
    let mut attempts = 0;
    loop {
        match source.step(soon()).unwrap() {
            Step::Chunk(parcel) if parcel.identity().unwrap().sequence == 4 => {
                attempts += 1;
                parcel.fail_because(format!("attempt {attempts}"));
            }
            Step::Chunk(_) | Step::Idle => {}
            Step::End => break,
        }
    }
    assert_eq!(attempts, 3);
    let report = source.report();
    assert_eq!((report.acknowledged, report.given_back), (5, 3));
    assert_eq!(report.quarantined, 1);
    let reasons = reasons.0.lock().unwrap();
    let reason = "the consumer gave this chunk back 3 times; the last time: attempt 3";
    assert_eq!(*reasons, [(4, reason.to_owned())]);
}
