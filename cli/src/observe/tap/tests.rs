use super::*;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

fn frame(kind: u8, number: u64, rest: &[u8]) -> Vec<u8> {
    [&[kind][..], &number.to_be_bytes(), rest].concat()
}

#[test]
fn a_slow_tap_is_told_how_many_chunks_it_skipped() {
    let hub = Arc::<TapHub>::default();
    let mut tap = hub.tap(1).unwrap();
    assert!(hub.tap(1).is_none(), "one is the most here");
    let more = 10;
    for number in 0..RING_CHUNKS + more {
        hub.pass(&Bytes::from(number.to_be_bytes().to_vec()));
    }
    let first = block_on(tap.next()).unwrap();
    let skipped = frame(SKIPPED_FRAME, 10, b"");
    let chunk = frame(CHUNK_FRAME, 8, &more.to_be_bytes());
    assert_eq!(first, [skipped, chunk].concat());
    let second = block_on(tap.next()).unwrap();
    assert_eq!(second, frame(CHUNK_FRAME, 8, &(more + 1).to_be_bytes()));
    drop(tap);
    assert_eq!(hub.taps(), 0);
}

#[test]
fn bytes_that_wait_for_taps_are_bounded_and_let_go() {
    let hub = Arc::<TapHub>::default();
    let large = Bytes::from(vec![0; RING_BYTES / 2]);
    hub.pass(&large);
    assert_eq!(hub.held_bytes.load(Ordering::Relaxed), 0, "nobody looks");
    let mut tap = hub.tap(4).unwrap();
    for _ in 0..5 {
        hub.pass(&large);
    }
    assert_eq!(hub.skipped(), 3);
    assert_eq!(hub.held_bytes.load(Ordering::Relaxed), RING_BYTES);
    let first = block_on(tap.next()).unwrap();
    assert_eq!(first[..FRAME_HEAD], frame(SKIPPED_FRAME, 3, b""));
    block_on(tap.next()).unwrap();
    assert_eq!(hub.held_bytes.load(Ordering::Relaxed), 0);
}
