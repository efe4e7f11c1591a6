//! A writer whose owner does not wait for confirmations.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkWriter, Notify, Outcome};
use baler_connector_testkit::{ChunkSource, Medium, PATIENCE, RabbitMq, within_patience};

use crate::support::{Rabbit, declared, fresh_name, writer};

#[derive(Default)]
struct Told(AtomicU64);

impl Notify for Told {
    fn notify(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Told {
    fn take(&self) -> u64 {
        self.0.swap(0, Ordering::SeqCst)
    }
}

/// Opens a writer and has the broker take a chunk; from then on nobody waits. The writer may tell of
/// that chunk a moment later: its thread does so after the confirmation can be seen.
fn at_rest(writer: &mut dyn ChunkWriter, source: &mut ChunkSource) -> Arc<Told> {
    let told = Arc::new(Told::default());
    writer.set_notify(Arc::<Told>::clone(&told));
    writer.reopen(Instant::now() + PATIENCE).unwrap();
    writer.offer(source.next(0, 100)).unwrap();
    let mut confirmations = Vec::new();
    within_patience("the first chunk is confirmed", || {
        writer.confirmations(&mut confirmations).unwrap();
        (confirmations.len() == 1).then_some(())
    });
    writer.set_awaited(false);
    told
}

/// The pace of a load: chunks come fast, and not at once.
#[expect(clippy::disallowed_methods, reason = "nothing is waited for")]
fn pause() {
    thread::sleep(Duration::from_millis(4));
}

/// How often threads of this process with a name went to sleep by themselves.
fn sleeps(name: &str) -> u64 {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let status = |task: fs::DirEntry| fs::read_to_string(task.path().join("status")).ok();
    let sleeps = tasks.filter_map(|task| status(task.ok()?)).map(|status| {
        let field = |wanted| {
            let line = status.lines().find_map(|line| line.strip_prefix(wanted));
            line.unwrap_or_default().trim().to_owned()
        };
        match field("Name:").starts_with(name) {
            true => field("voluntary_ctxt_switches:").parse().unwrap_or(0),
            false => 0,
        }
    });
    sleeps.sum()
}

#[test]
fn no_thread_runs_for_a_confirmation_that_nobody_waits_for() {
    let node = RabbitMq::shared();
    let mut writer = writer(&node.uri(&format!("?queue={}", fresh_name("unawaited"))));
    let mut source = ChunkSource::new(1);
    let told = at_rest(&mut *writer, &mut source);
    let mut confirmations = Vec::new();
    let mut offered = 0;
    // A machine that does something else meanwhile makes chunks come slowly, and then it is worth
    // while to look at each: one load in which they do not has to do.
    within_patience("a load wakes nobody", || {
        let before = ["baler-amqp-send", "lapin-io-loop"].map(sleeps);
        told.take();
        let began = Instant::now();
        for _ in 0..200 {
            // A slow broker may let the window fill.
            offered += usize::from(writer.offer(source.next(0, 100)).is_ok());
            writer.confirmations(&mut confirmations).unwrap();
            pause();
        }
        let after = ["baler-amqp-send", "lapin-io-loop"].map(sleeps);
        let [own, library] = [0, 1].map(|thread| after[thread] - before[thread]);
        // It looks after the connection five times a second; sending wakes the client library.
        let looks = u64::try_from(began.elapsed().as_millis()).unwrap() / 200;
        let are_asleep = own <= looks * 2 + 10 && library <= 260 + looks * 2;
        (are_asleep && told.take() == 0).then_some(())
    });
    // Everything is confirmed once somebody waits for it, and told: the last one at least, since all
    // others may have been confirmed by now.
    writer.set_awaited(true);
    within_patience("another one is taken", || {
        let chunk = source.next(0, 100);
        writer.offer(chunk).is_ok().then_some(())
    });
    offered += 1;
    within_patience("the rest is confirmed", || {
        writer.confirmations(&mut confirmations).unwrap();
        (confirmations.len() == offered).then_some(())
    });
    within_patience("it is told", || (told.take() > 0).then_some(()));
    let tickets: Vec<_> = confirmations.iter().map(|it| it.ticket).collect();
    assert!(tickets.is_sorted(), "{tickets:?}");
}

#[test]
fn owner_is_told_of_a_refusal_that_it_does_not_wait_for() {
    let node = RabbitMq::shared();
    let queue = fresh_name("unawaited-full");
    let uri = node.uri(&format!("?queue={queue}&queue_type=classic"));
    declared(&uri);
    let mut writer = writer(&uri);
    let mut source = ChunkSource::new(1);
    let told = at_rest(&mut *writer, &mut source);
    let definition = r#"{"max-length":1,"overflow":"reject-publish"}"#;
    node.control(&["set_policy", &queue, &format!("^{queue}$"), definition]);
    let mut confirmations = Vec::new();
    within_patience("a full queue refuses", || {
        // It may be answered before the offer returns.
        let answered = writer.counts();
        writer.offer(source.next(0, 100)).unwrap();
        // A policy is not there at once; whether this one was refused is known when it is answered.
        within_patience("it is answered", || {
            let now = writer.counts();
            let news = (now.confirmed, now.nacked) != (answered.confirmed, answered.nacked);
            news.then_some(())
        });
        (writer.counts().nacked > 0).then_some(())
    });
    within_patience("the owner is told", || (told.take() > 0).then_some(()));
    writer.confirmations(&mut confirmations).unwrap();
    let last = confirmations.pop().unwrap();
    assert!(matches!(last.outcome, Outcome::Refused(error) if error.is_retryable()));
}

#[test]
fn owner_is_told_of_a_connection_that_is_lost_while_it_waits_for_nothing() {
    for chunks in [0, 120] {
        let mut medium = Rabbit::fresh();
        let mut writer = medium.writer();
        let mut source = ChunkSource::new(1);
        let told = at_rest(&mut *writer, &mut source);
        for _ in 0..chunks {
            // A slow broker may let the window fill.
            writer.offer(source.next(0, 100)).ok();
            writer.confirmations(&mut Vec::new()).unwrap();
            pause();
        }
        medium.break_connections();
        // That the first chunk is confirmed may be told late: what counts is the last word.
        within_patience("the owner is told of the loss", || {
            let news = told.take() > 0;
            (news && writer.confirmations(&mut Vec::new()).is_err()).then_some(())
        });
    }
}

#[test]
fn closing_waits_for_confirmations_although_nobody_did() {
    let node = RabbitMq::shared();
    let mut writer = writer(&node.uri(&format!("?queue={}", fresh_name("unawaited-close"))));
    let mut source = ChunkSource::new(1);
    at_rest(&mut *writer, &mut source);
    let mut offered = 0;
    for _ in 0..120 {
        offered += usize::from(writer.offer(source.next(0, 100)).is_ok());
        pause();
    }
    let report = writer.close(Instant::now() + PATIENCE);
    assert!(report.error.is_none() && report.unconfirmed.is_empty());
    assert!(offered >= 32);
    assert_eq!(report.confirmations.len(), offered);
}
