//! A socket, somebody at its other end, and a reader that counts its wake-ups.

use std::net::TcpListener;
use std::sync::atomic::AtomicU32;
use std::task::Wake;
use std::thread;

use baler_connector_testkit::within_patience;
use tokio::runtime::Runtime as TokioRuntime;

use super::*;

#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

struct Bench {
    gate: Gate,
    runtime: TokioRuntime,
    stream: GatedStream,
    peer: TcpStream,
    woken: Arc<Woken>,
}

impl Bench {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let gate = Gate::default();
        let stream = runtime.block_on(async {
            let reactor = GatedReactor {
                tokio: Tokio::current(),
                gate: gate.clone(),
            };
            let address = listener.local_addr().unwrap();
            reactor.tcp_connect_addr(address).await.unwrap()
        });
        let (peer, _) = listener.accept().unwrap();
        Self {
            gate,
            runtime,
            stream,
            peer,
            woken: Arc::default(),
        }
    }

    fn woken(&self) -> u32 {
        self.woken.0.load(Ordering::SeqCst)
    }

    /// What is there to be read, if anything is.
    fn read(&mut self) -> Poll<io::Result<usize>> {
        let waker = Waker::from(Arc::clone(&self.woken));
        let mut context = Context::from_waker(&waker);
        Pin::new(&mut self.stream).poll_read(&mut context, &mut [0; 16])
    }

    fn write(&mut self, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let waker = Waker::from(Arc::clone(&self.woken));
        let mut context = Context::from_waker(&waker);
        Pin::new(&mut self.stream).poll_write(&mut context, bytes)
    }

    /// Lets the runtime do what it has to.
    fn run(&self) {
        self.runtime.block_on(async {
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
        });
    }

    /// Waits until what the peer sent is there, whoever knows.
    fn await_arrival(&self) {
        within_patience("it arrives", || {
            self.stream.socket.stream.peek(&mut [0]).ok().map(drop)
        });
    }

    fn await_wake_up(&self) {
        within_patience("the reader is woken", || {
            self.run();
            (self.woken() > 0).then_some(())
        });
    }
}

#[test]
fn open_gate_wakes_the_reader_for_whatever_comes() {
    let mut bench = Bench::new();
    for round in 1..4 {
        assert!(bench.read().is_pending());
        assert_eq!(bench.woken(), round - 1);
        bench.peer.write_all(b"abc").unwrap();
        within_patience("the reader is woken", || {
            bench.run();
            (bench.woken() == round).then_some(())
        });
        assert!(matches!(bench.read(), Poll::Ready(Ok(3))));
    }
}

#[test]
fn shut_gate_wakes_nobody_until_it_is_opened_or_something_is_written() {
    let mut bench = Bench::new();
    bench.gate.set_shut(true);
    bench.run();
    assert!(bench.read().is_pending());
    bench.peer.write_all(b"abc").unwrap();
    bench.await_arrival();
    bench.run();
    assert_eq!(bench.woken(), 0);
    assert!(bench.write(b"xyz").is_ready());
    assert_eq!(bench.woken(), 1);
    assert!(matches!(bench.read(), Poll::Ready(Ok(3))));
    assert!(bench.read().is_pending());

    bench.peer.write_all(b"de").unwrap();
    bench.await_arrival();
    bench.run();
    assert_eq!(bench.woken(), 1);
    bench.gate.set_shut(false);
    within_patience("the reader is woken", || {
        bench.run();
        (bench.woken() == 2).then_some(())
    });
    assert!(matches!(bench.read(), Poll::Ready(Ok(2))));
}

#[test]
fn writer_is_woken_when_there_is_room_again_even_if_the_gate_is_shut() {
    let mut bench = Bench::new();
    bench.gate.set_shut(true);
    bench.run();
    let bytes = vec![0; 1 << 20];
    while bench.write(&bytes).is_ready() {}
    bench.run();
    assert_eq!(bench.woken(), 0);
    let mut peer = bench.peer.try_clone().unwrap();
    let draining = thread::spawn(move || io::copy(&mut peer, &mut io::sink()));
    bench.await_wake_up();
    assert!(bench.write(&bytes).is_ready());
    drop(bench);
    assert!(draining.join().unwrap().unwrap() > 0);
}

#[test]
fn reader_learns_of_the_end() {
    let mut bench = Bench::new();
    assert!(bench.read().is_pending());
    bench.peer.shutdown(Shutdown::Write).unwrap();
    bench.await_wake_up();
    assert!(matches!(bench.read(), Poll::Ready(Ok(0))));

    // That of the runtime, too, as with any socket of one.
    let mut bench = Bench::new();
    assert!(bench.read().is_pending());
    bench.runtime.shutdown_background();
    assert_eq!(bench.woken.0.load(Ordering::SeqCst), 1);
    let mut context = Context::from_waker(Waker::noop());
    let read = Pin::new(&mut bench.stream).poll_read(&mut context, &mut [0; 16]);
    assert!(matches!(read, Poll::Ready(Err(_))), "{read:?}");
}

#[test]
fn socket_that_is_dropped_is_closed_although_it_is_watched() {
    let bench = Bench::new();
    bench.run();
    let Bench {
        stream,
        mut peer,
        runtime,
        ..
    } = bench;
    drop(stream);
    assert_eq!(peer.read(&mut [0]).unwrap(), 0);
    within_patience("nobody watches it any more", || {
        runtime.block_on(tokio::task::yield_now());
        (runtime.metrics().num_alive_tasks() == 0).then_some(())
    });
}
