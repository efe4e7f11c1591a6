//! Hosts that refuse, and several of them.

use std::time::{Duration, Instant};

use baler_common::transport::uri::{Host, Uri};
use baler_common::transport::{Failure, RetryClass};

use super::{connect, random_below, spawn, together};
use crate::config::AmqpConfig;

fn host(name: &str) -> Host {
    Host {
        name: name.into(),
        port: None,
    }
}

#[test]
fn refused_connections_leave_no_task_behind() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let uri = format!("amqp://127.0.0.1:{port}?queue=q");
    let config = Uri::parse(&uri).unwrap();
    let config = AmqpConfig::from_uri(config).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        for _ in 0..20 {
            let by = Instant::now() + Duration::from_secs(10);
            let refused = connect(&config, "test", by).await;
            assert_eq!(refused.err().unwrap().class, RetryClass::Retry);
        }
        // What is about to end may.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(runtime.metrics().num_alive_tasks(), 0);
}

#[test]
fn failure_is_final_only_if_it_is_at_every_host() {
    let (a, b) = (host("a"), host("b"));
    let refused = || Failure::last("connect to", "refused");
    let away = || Failure::retry("connect to", "away");
    let mixed = together(vec![(&a, refused()), (&b, away())]);
    assert_eq!(mixed.class, RetryClass::Retry);
    assert_eq!(&*mixed.message, "b: away; a: refused");
    let both = together(vec![(&a, refused()), (&b, refused())]);
    assert_eq!(both.class, RetryClass::Final);
    let alone = together(vec![(&a, refused())]);
    assert_eq!(&*alone.message, "refused");
}

#[test]
fn every_host_comes_first_sooner_or_later() {
    let mut seen = [false; 3];
    for _ in 0..1000 {
        seen[random_below(3)] = true;
    }
    assert_eq!(seen, [true; 3]);
}

#[test]
fn panic_of_a_thread_is_a_failure_with_its_text() {
    let (sender, failures) = std::sync::mpsc::channel();
    let panics = || async { panic!("the test asked for it") };
    let failed = move |failure| sender.send(failure).unwrap();
    let thread = spawn("baler-test", "read from", panics, failed).unwrap();
    let message = "this end panicked: the test asked for it";
    assert_eq!(
        failures.recv().unwrap(),
        Failure::retry("read from", message)
    );
    thread.join().unwrap();
}
