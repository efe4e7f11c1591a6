//! A connection whose broker answers when the test says so.

use std::collections::HashMap;
use std::future::poll_fn;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::thread;

use baler_common::transport::{Durability, Order, Outcome, RejectReason};
use baler_connector_testkit::{ChunkSource, within_patience};
use lapin::{Confirmation as Reply, ErrorKind};

use super::*;

const PATIENT: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_millis(200);

/// What the broker was sent and answers.
#[derive(Default)]
struct Broker {
    published: Vec<u64>,
    replies: HashMap<u64, lapin::Result<Reply>>,
    wakers: HashMap<u64, Waker>,
}

#[derive(Default)]
struct Told(AtomicU32);

impl Notify for Told {
    fn notify(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// An open connection, its owner and its thread, which runs when the test lets it.
struct Bench {
    link: Arc<Link>,
    broker: Arc<Mutex<Broker>>,
    told: Arc<Told>,
    source: ChunkSource,
    capability: Capability,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        let link = Arc::new(Link::default());
        let told = Arc::new(Told::default());
        link.set_notify(Arc::<Told>::clone(&told));
        let bench = Self {
            link,
            broker: Arc::default(),
            told,
            source: ChunkSource::new(1),
            capability: Capability::new("amqp", Order::PerLane, Durability::Disk),
            now: Instant::now(),
        };
        bench.connect();
        bench
    }

    fn connect(&self) {
        self.link.reset();
        let broker = Arc::clone(&self.broker);
        self.link.open(Box::new(move |chunk| {
            let broker = Arc::clone(&broker);
            let mut is_sent = false;
            Box::pin(poll_fn(move |cx| {
                let mut broker = broker.lock().unwrap();
                if !std::mem::replace(&mut is_sent, true) {
                    broker.published.push(chunk.ticket);
                }
                if let Some(reply) = broker.replies.remove(&chunk.ticket) {
                    return Poll::Ready(reply);
                }
                broker.wakers.insert(chunk.ticket, cx.waker().clone());
                Poll::Pending
            }))
        }));
    }

    /// One whose broker took a chunk, and whose owner waits for nothing.
    fn at_rest() -> Self {
        let mut bench = Self::new();
        bench.offer(1);
        bench.reply(0, Ok(Reply::Ack(None)));
        bench.run();
        assert_eq!(bench.confirmed(), [0]);
        bench.link.set_awaited(false);
        bench.told();
        bench
    }

    fn offer(&mut self, chunks: usize) {
        for chunk in self.source.take(chunks) {
            self.link.offer(chunk, &self.capability).unwrap();
        }
    }

    fn published(&self) -> Vec<u64> {
        std::mem::take(&mut self.broker.lock().unwrap().published)
    }

    fn reply(&self, ticket: u64, reply: lapin::Result<Reply>) {
        let mut broker = self.broker.lock().unwrap();
        broker.replies.insert(ticket, reply);
        let waker = broker.wakers.remove(&ticket);
        drop(broker);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether the thread was woken since the last time.
    fn is_rung(&self) -> bool {
        let rung = pin!(self.link.bell.rung());
        rung.poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }

    /// The thread runs as long as it is woken; whether it was.
    fn run(&self) -> bool {
        let mut ran = false;
        while self.is_rung() {
            ran = true;
            self.link.look(self.now, PATIENT);
        }
        ran
    }

    /// So much time goes by, and the thread looks.
    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.link.look(self.now, PATIENT);
        self.run();
    }

    /// How often the owner was told since the last time.
    fn told(&self) -> u32 {
        self.told.0.swap(0, Ordering::SeqCst)
    }

    fn confirmations(&self) -> Vec<Confirmation> {
        let mut told = Vec::new();
        assert!(self.link.confirmations(&mut told, "there").is_none());
        told
    }

    fn confirmed(&self) -> Vec<u64> {
        let told = self.confirmations().into_iter();
        told.map(|told| {
            assert!(matches!(told.outcome, Outcome::Confirmed));
            told.ticket
        })
        .collect()
    }
}

#[test]
fn first_chunk_of_a_connection_goes_alone_and_nothing_overtakes_it() {
    let mut bench = Bench::new();
    bench.offer(3);
    assert_eq!(bench.published(), [0]);
    bench.run();
    assert!(
        bench.published().is_empty(),
        "the others wait for its answer"
    );
    bench.reply(0, Ok(Reply::Nack(None)));
    assert!(bench.run() && bench.told() > 0);
    let refused = bench.confirmations();
    let tickets: Vec<_> = refused.iter().map(|it| it.ticket).collect();
    assert_eq!(tickets, [0, 1, 2]);
    for Confirmation { outcome, .. } in refused {
        assert!(matches!(outcome, Outcome::Refused(error) if error.is_retryable()));
    }
    assert!(bench.published().is_empty());
    bench.source = ChunkSource::new(1);
    bench.offer(3);
    assert_eq!(bench.published(), [0]);
    bench.link.set_awaited(false);
    bench.reply(0, Ok(Reply::Ack(None)));
    bench.run();
    assert_eq!(bench.published(), [1, 2], "whether or not the owner waits");
    assert_eq!(bench.confirmed(), [0]);
    let counts = bench.link.counts();
    assert_eq!(
        (counts.published, counts.nacked, counts.confirmed),
        (4, 1, 1)
    );
    // The next connection begins anew.
    bench.connect();
    bench.offer(2);
    assert_eq!(bench.published().len(), 1);
}

#[test]
fn owner_that_waits_is_told_of_each_answer() {
    let mut bench = Bench::at_rest();
    bench.link.set_awaited(true);
    bench.run();
    bench.told();
    for ticket in 1..4 {
        bench.offer(1);
        bench.run();
        assert_eq!(bench.told(), 0);
        bench.reply(ticket, Ok(Reply::Ack(None)));
        assert!(bench.run());
        assert_eq!(bench.told(), 1);
        assert_eq!(bench.confirmed(), [ticket]);
    }
}

#[test]
fn nothing_wakes_anybody_while_nobody_waits() {
    let mut bench = Bench::at_rest();
    bench.offer(1);
    bench.run();
    for ticket in 1..100 {
        bench.reply(ticket, Ok(Reply::Ack(None)));
        bench.offer(1);
        assert!(!bench.is_rung(), "the thread is woken for chunk {ticket}");
        assert_eq!(bench.confirmed(), [ticket], "the owner takes it itself");
        if ticket % 10 == 0 {
            bench.pass(TICK);
        }
    }
    assert!(!bench.link.bell.is_wanted());
    assert_eq!(bench.told(), 0);
}

#[test]
fn owner_that_waits_again_is_told_of_what_it_missed_and_of_what_comes() {
    let mut bench = Bench::at_rest();
    bench.offer(2);
    bench.run();
    bench.reply(1, Ok(Reply::Ack(None)));
    assert!(!bench.is_rung());
    bench.link.set_awaited(true);
    assert!(bench.run());
    assert_eq!(bench.told(), 1);
    assert_eq!(bench.confirmed(), [1]);
    bench.reply(2, Ok(Reply::Ack(None)));
    assert!(bench.run());
    assert_eq!(bench.told(), 1);

    // Nor is lost what the thread took while nobody waited.
    bench.link.set_awaited(false);
    assert_eq!(bench.confirmed(), [2]);
    bench.offer(1);
    bench.reply(3, Ok(Reply::Ack(None)));
    (0..4).for_each(|_| bench.pass(TICK));
    assert_eq!(bench.told(), 0);
    bench.link.set_awaited(true);
    assert!(bench.run());
    assert_eq!(bench.told(), 1);
    assert_eq!(bench.confirmed(), [3]);
}

#[test]
fn owner_whose_chunk_found_no_room_is_told_when_there_is_some() {
    let mut bench = Bench::at_rest();
    bench.capability.window_chunks = NonZeroUsize::new(2).unwrap();
    bench.offer(2);
    bench.run();
    let chunk = bench.source.next(0, 100);
    let rejected = bench.link.offer(chunk, &bench.capability).unwrap_err();
    assert!(matches!(rejected.reason, RejectReason::Full));
    bench.run();
    assert_eq!(bench.told(), 0);
    bench.reply(1, Ok(Reply::Ack(None)));
    assert!(bench.run());
    assert_eq!(bench.told(), 1);
    bench.link.offer(rejected.chunk, &bench.capability).unwrap();
    bench.run();
    bench.reply(2, Ok(Reply::Ack(None)));
    assert!(!bench.is_rung(), "nobody waits any more");
}

#[test]
fn owner_that_makes_room_by_taking_answers_is_told_too() {
    let mut bench = Bench::at_rest();
    bench.capability.window_chunks = NonZeroUsize::new(1).unwrap();
    bench.offer(1);
    bench.run();
    bench.reply(1, Ok(Reply::Ack(None)));
    let chunk = bench.source.next(0, 100);
    bench.link.offer(chunk, &bench.capability).unwrap_err();
    assert_eq!(bench.confirmed(), [1]);
    assert_eq!(bench.told(), 1);
}

#[test]
fn refusal_is_told_although_nobody_waits() {
    let mut bench = Bench::at_rest();
    bench.offer(2);
    bench.run();
    bench.reply(1, Ok(Reply::Nack(None)));
    assert!(!bench.is_rung());
    (0..2).for_each(|_| bench.pass(TICK));
    assert_eq!(bench.told(), 1);
    assert_eq!(bench.confirmations().len(), 1);
    // Where one was refused, others may be.
    bench.reply(2, Ok(Reply::Nack(None)));
    assert!(bench.run());
    assert_eq!(bench.told(), 1);
}

#[test]
fn connection_is_not_looked_after_while_nothing_happens() {
    let mut bench = Bench::at_rest();
    bench.offer(1);
    bench.run();
    let next = |bench: &Bench| bench.link.look(bench.now, PATIENT);
    assert!(matches!(next(&bench), Next::Wait(Some(at)) if at <= bench.now + TICK));
    bench.reply(1, Ok(Reply::Ack(None)));
    (0..3).for_each(|_| bench.pass(TICK));
    assert!(matches!(next(&bench), Next::Wait(None)));
    bench.offer(1);
    assert!(bench.is_rung(), "from now on it is");
}

#[test]
fn connection_is_looked_after_rarely_while_chunks_follow_each_other() {
    let mut bench = Bench::at_rest();
    let waits = |bench: &Bench| match bench.link.look(bench.now, PATIENT) {
        Next::Wait(Some(at)) => at - bench.now,
        next => panic!("{next:?}"),
    };
    let mut answered = 0;
    // Ten a second, for three seconds.
    for tenth in 0..30 {
        bench.offer(1);
        answered += 1;
        bench.reply(answered, Ok(Reply::Ack(None)));
        let mut told = Vec::new();
        bench.link.confirmations(&mut told, "there");
        bench.pass(TICK / 2);
        // After two windows of which each had some.
        let most = if tenth < 3 { TICK } else { TICK * 5 };
        assert!(waits(&bench) <= most, "{tenth}: {:?}", waits(&bench));
    }
    assert!(waits(&bench) > TICK, "{:?}", waits(&bench));
    // Then none: after twice the time at most somebody waits for the answer to the last one.
    bench.offer(1);
    (0..2).for_each(|_| bench.pass(TICK * 5));
    assert!(bench.link.bell.is_wanted());
}

#[test]
fn oldest_chunk_is_overdue_whether_or_not_somebody_waits() {
    for awaited in [true, false] {
        let mut bench = Bench::at_rest();
        bench.link.set_awaited(awaited);
        bench.offer(1);
        bench.run();
        bench.pass(PATIENT / 2);
        bench.offer(1);
        bench.now += PATIENT;
        let next = bench.link.look(bench.now, PATIENT);
        assert!(
            matches!(&next, Next::Fail(failure) if failure.message.contains("nothing was confirmed")),
            "{next:?}"
        );
    }
}

#[test]
fn connection_that_is_lost_is_told_at_once_by_whoever_notices() {
    // The thread.
    let mut bench = Bench::at_rest();
    bench.offer(2);
    bench.reply(1, Ok(Reply::Ack(None)));
    bench.link.fail(Failure::retry("publish to", "gone"));
    assert_eq!(bench.told(), 1);
    let mut told = Vec::new();
    let failure = bench.link.confirmations(&mut told, "there").unwrap();
    assert_eq!(&*failure.message, "gone");
    assert_eq!(told.len(), 1, "what was answered before counts");

    // The owner: the thread then ends.
    let mut bench = Bench::at_rest();
    bench.offer(1);
    bench.run();
    bench.reply(1, Err(ErrorKind::MissingHeartbeatError.into()));
    assert!(bench.link.confirmations(&mut told, "there").is_some());
    assert!(bench.is_rung());
    assert!(matches!(bench.link.look(bench.now, PATIENT), Next::Fail(_)));
}

#[test]
fn who_closes_is_woken_by_the_last_answer() {
    let mut bench = Bench::at_rest();
    bench.offer(2);
    bench.run();
    let link = Arc::clone(&bench.link);
    let closing = thread::spawn(move || link.drain(Instant::now() + PATIENT));
    within_patience("it waits", || {
        bench.run();
        bench.link.bell.is_wanted().then_some(())
    });
    bench.reply(1, Ok(Reply::Ack(None)));
    assert!(bench.run());
    assert!(!closing.is_finished());
    bench.reply(2, Ok(Reply::Ack(None)));
    assert!(bench.run());
    assert!(closing.join().unwrap().is_none());
}
