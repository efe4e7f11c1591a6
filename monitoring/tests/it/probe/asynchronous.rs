//! Asynchronous functions: the trace follows the task.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use baler_monitoring::{TestClock, TraceContext, in_trace, probe};

use super::recording::{Recording, reconstruct};

/// Polls until the future is done; it must not wait for anything but its next poll.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = poll_once(future.as_mut()) {
            return output;
        }
    }
}

pub(crate) fn poll_once<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Is pending `times` times.
pub(crate) async fn yield_times(mut times: u32) {
    poll_fn(|_| {
        times = times.wrapping_sub(1);
        if times == u32::MAX {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

#[probe]
async fn order(clock: TestClock, yields: u32) -> u32 {
    check(&clock, yields).await;
    note();
    check(&clock, yields).await
}

#[probe]
async fn check(clock: &TestClock, yields: u32) -> u32 {
    clock.advance(10);
    note();
    yield_times(yields).await;
    note();
    clock.advance(10);
    yields
}

#[probe]
fn note() {}

const ORDER: &str = "order(check(note note) note check(note note))";

#[test]
fn nested_calls_share_the_trace_over_polls() {
    let recording = Recording::start();
    let clock = recording.clock.clone();
    assert_eq!(block_on(order(clock, 3)), 3);
    let records = recording.finish();
    assert_eq!(reconstruct(&records), [ORDER]);
    let order = records.last().unwrap();
    assert_eq!((order.tin, order.tout), (1_000, 1_040));
}

#[test]
fn a_call_begins_with_its_first_poll() {
    let recording = Recording::start();
    let future = order(recording.clock.clone(), 0);
    recording.clock.advance(100);
    block_on(future);
    let records = recording.finish();
    assert_eq!(records.last().unwrap().tin, 1_100);
}

#[test]
fn tasks_interleaved_on_one_thread_do_not_mix() {
    let recording = Recording::start();
    let mut tasks: Vec<_> = (0..5)
        .map(|yields| Box::pin(order(recording.clock.clone(), yields)))
        .collect();
    while !tasks.is_empty() {
        tasks.retain_mut(|task| {
            let pending = poll_once(task.as_mut()).is_pending();
            // Code between the polls is not part of the task.
            note();
            pending
        });
    }
    let trees = reconstruct(&recording.finish());
    let orders = trees.iter().filter(|tree| *tree == ORDER).count();
    let notes = trees.iter().filter(|tree| *tree == "note").count();
    assert_eq!((orders, notes), (5, trees.len() - 5));
}

#[test]
fn tasks_that_change_threads_at_each_poll_keep_their_trace() {
    type Task = Pin<Box<dyn Future<Output = u32> + Send>>;
    let recording = Recording::start();
    let (to_left, left) = mpsc::channel::<Task>();
    let (to_right, right) = mpsc::channel::<Task>();
    for yields in 0..20 {
        let task = order(recording.clock.clone(), yields % 4);
        to_left.send(Box::pin(task)).unwrap();
    }
    let unfinished = AtomicUsize::new(20);
    std::thread::scope(|scope| {
        // A thread that finds a task unfinished passes it to the other.
        let unfinished = &unfinished;
        let relay = |from: mpsc::Receiver<Task>, to: mpsc::Sender<Task>| {
            move || {
                while unfinished.load(Ordering::SeqCst) > 0 {
                    let Ok(mut task) = from.recv_timeout(Duration::from_millis(1)) else {
                        continue;
                    };
                    if poll_once(task.as_mut()).is_ready() {
                        unfinished.fetch_sub(1, Ordering::SeqCst);
                    } else if to.send(task).is_err() {
                        panic!("the other thread ended early");
                    }
                }
            }
        };
        scope.spawn(relay(left, to_right));
        scope.spawn(relay(right, to_left));
    });
    assert_eq!(reconstruct(&recording.finish()), vec![ORDER; 20]);
}

#[probe]
async fn both(clock: &TestClock) {
    let mut left = pin!(check(clock, 1));
    let mut right = pin!(check(clock, 2));
    let (mut left_done, mut right_done) = (false, false);
    poll_fn(|task| {
        left_done = left_done || left.as_mut().poll(task).is_ready();
        right_done = right_done || right.as_mut().poll(task).is_ready();
        if left_done && right_done {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    note();
}

#[test]
fn branches_of_a_task_share_one_count() {
    let recording = Recording::start();
    block_on(both(&recording.clock));
    let mut records = recording.finish();
    records.sort_by_key(|record| record.eoi);
    let calls: Vec<_> = records
        .iter()
        .map(|record| (record.operation(), record.eoi, record.ess))
        .collect();
    assert_eq!(
        calls,
        [
            ("both", 0, 0),
            ("check", 1, 1),
            ("note", 2, 2),
            ("check", 3, 1),
            ("note", 4, 2),
            ("note", 5, 2),
            ("note", 6, 2),
            ("note", 7, 1),
        ]
    );
}

#[test]
fn a_call_of_a_synchronous_parent_is_its_child() {
    #[probe]
    fn main(clock: &TestClock) {
        note();
        block_on(check(clock, 1));
        note();
    }
    let recording = Recording::start();
    main(&recording.clock);
    assert_eq!(
        reconstruct(&recording.finish()),
        ["main(note check(note note) note)"]
    );
}

#[probe]
async fn spawns(clock: TestClock) {
    let own = tokio::spawn(order(clock.clone(), 0));
    own.await.unwrap();
    let ours = tokio::spawn(in_trace(TraceContext::current(), order(clock.clone(), 0)));
    ours.await.unwrap();
}

#[test]
fn spawned_tasks_begin_traces_unless_carried_over() {
    let recording = Recording::start();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(spawns(recording.clock.clone()));
    drop(runtime);
    let trees = reconstruct(&recording.finish());
    assert_eq!(trees, [ORDER.to_owned(), format!("spawns({ORDER})")]);
}

#[test]
fn many_tasks_on_many_threads_keep_their_traces() {
    let recording = Recording::start();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .build()
        .unwrap();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..200)
            .map(|_| {
                let clock = recording.clock.clone();
                tokio::spawn(async move {
                    #[probe]
                    async fn task(clock: &TestClock) {
                        note();
                        tokio::task::yield_now().await;
                        check(clock, 0).await;
                        tokio::task::yield_now().await;
                        note();
                    }
                    task(&clock).await;
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    drop(runtime);
    let trees = reconstruct(&recording.finish());
    assert_eq!(trees, vec!["task(note check(note note) note)"; 200]);
}

struct Service {
    calls: u32,
}

trait Answer {
    async fn answer(&mut self, question: &str) -> Result<usize, Box<dyn std::error::Error>>;
}

impl Answer for Service {
    #[probe]
    async fn answer(&mut self, question: &str) -> Result<usize, Box<dyn std::error::Error>> {
        self.calls += 1;
        if question.is_empty() {
            return Err("no question".into());
        }
        let number: usize = question.parse()?;
        yield_times(1).await;
        Ok(number)
    }
}

impl Service {
    #[probe]
    async fn into_calls(self) -> u32 {
        self.calls
    }

    #[probe]
    async fn each<'a, T, I>(&self, items: I) -> impl Iterator<Item = T> + use<'a, T, I>
    where
        T: Copy + 'a,
        I: IntoIterator<Item = &'a T>,
    {
        yield_times(1).await;
        items.into_iter().copied().collect::<Vec<_>>().into_iter()
    }

    #[probe]
    async unsafe fn dangerous(&self, number: u32) -> u32 {
        number + self.calls
    }
}

#[test]
fn every_kind_of_asynchronous_function_works() {
    let recording = Recording::start();
    let mut service = Service { calls: 0 };
    assert!(block_on(service.answer("")).is_err());
    assert!(block_on(service.answer("x")).is_err());
    assert_eq!(block_on(service.answer("42")).unwrap(), 42);
    assert_eq!(block_on(service.each(&[1, 2])).collect::<Vec<_>>(), [1, 2]);
    // SAFETY: the function is not as dangerous as it says.
    #[expect(unsafe_code, reason = "an unsafe function is called")]
    let future = unsafe { service.dangerous(3) };
    assert_eq!(block_on(future), 6);
    assert_eq!(block_on(service.into_calls()), 3);
    let trees = reconstruct(&recording.finish());
    assert_eq!(
        trees,
        [
            "answer",
            "answer",
            "answer",
            "dangerous",
            "each",
            "into_calls"
        ]
    );
}

#[test]
fn the_state_of_a_body_is_held_once() {
    async fn plain() -> usize {
        let data = [1_u8; 1_024];
        yield_times(1).await;
        data.len()
    }
    async fn plain_outer() -> usize {
        plain().await
    }
    #[probe]
    async fn probed() -> usize {
        let data = [1_u8; 1_024];
        yield_times(1).await;
        data.len()
    }
    #[probe]
    async fn probed_outer() -> usize {
        probed().await
    }
    let plain = [size_of_val(&plain()), size_of_val(&plain_outer())];
    let probed = [size_of_val(&probed()), size_of_val(&probed_outer())];
    // A call and its context a level; a second copy would be 1,024 bytes.
    assert!(probed[0] <= plain[0] + 192, "{plain:?} {probed:?}");
    assert!(probed[1] <= plain[1] + 384, "{plain:?} {probed:?}");
}
