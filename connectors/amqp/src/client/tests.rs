//! Hosts that refuse, and several of them.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use baler_common::transport::uri::{Host, Uri};
use baler_common::transport::{Failure, RetryClass};

use super::{connect, merge_failures, random_below, spawn};
use crate::config::AmqpConfig;

fn host(name: &str) -> Host {
    Host {
        name: name.into(),
        port: None,
    }
}

/// What the host does with a connection.
#[derive(Debug, Clone, Copy, PartialEq)]
enum HostDoes {
    Close,
    Nothing,
    Refuse,
}

#[test]
fn attempts_that_fail_connect_once_and_leave_nothing_behind() {
    const ATTEMPTS: usize = 5;
    for does in [HostDoes::Close, HostDoes::Nothing, HostDoes::Refuse] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        listener.set_nonblocking(true).unwrap();
        let listener = (does != HostDoes::Refuse).then_some(listener);
        let uri = format!("amqp://127.0.0.1:{port}?queue=q&connect_timeout=200ms");
        let config = AmqpConfig::from_uri(Uri::parse(&uri).unwrap()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let accept = || listener.as_ref().and_then(|it| it.accept().ok());
        let mut accepted = 0;
        runtime.block_on(async {
            for _ in 0..ATTEMPTS {
                let by = Instant::now() + Duration::from_secs(10);
                let closing = async {
                    loop {
                        accepted += usize::from(accept().is_some());
                        tokio::task::yield_now().await;
                    }
                };
                let failed = tokio::select! {
                    connected = connect(&config, "test", by) => connected.err().unwrap(),
                    () = closing, if does == HostDoes::Close => unreachable!(),
                };
                assert_eq!(failed.class, RetryClass::Retry, "{does:?}: {failed:?}");
                let is_told = failed.message.contains("before it spoke AMQP");
                assert_eq!(is_told, does == HostDoes::Close, "{failed:?}");
            }
            let deadline = Instant::now() + Duration::from_secs(10);
            while runtime.metrics().num_alive_tasks() > 0 || has_threads() {
                assert!(
                    Instant::now() < deadline,
                    "{does:?} leaves tasks or threads"
                );
                tokio::task::yield_now().await;
            }
        });
        while accept().is_some() {
            accepted += 1;
        }
        let expected = if listener.is_some() { ATTEMPTS } else { 0 };
        assert_eq!(accepted, expected, "{does:?}");
    }
}

/// A web server, SSH, and a broker of AMQP 1.0.
#[test]
fn host_that_speaks_something_else_is_a_final_failure() {
    for (answer, told) in [
        (
            &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
            "does not speak AMQP 0.9.1",
        ),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak AMQP 0.9.1"),
        (b"AMQP\x00\x01\x00\x00", "AMQP 1.0.0"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let uri = format!("amqp://{}?queue=q", listener.local_addr().unwrap());
        let config = AmqpConfig::from_uri(Uri::parse(&uri).unwrap()).unwrap();
        let host = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            client.write_all(answer).unwrap();
            // Until the client closes.
            client.read_to_end(&mut Vec::new()).ok();
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let by = Instant::now() + Duration::from_secs(10);
        let failed = runtime
            .block_on(connect(&config, "test", by))
            .err()
            .unwrap();
        assert_eq!(failed.class, RetryClass::Final, "{failed:?}");
        assert!(failed.message.contains(told), "{failed:?}");
        host.join().unwrap();
    }
}

/// Whether this process has a thread of the client library.
fn has_threads() -> bool {
    fs::read_dir("/proc/self/task").unwrap().any(|task| {
        let name = fs::read_to_string(task.unwrap().path().join("comm"));
        name.is_ok_and(|name| name.starts_with("lapin"))
    })
}

#[test]
fn failure_is_final_only_if_it_is_at_every_host() {
    let (a, b) = (host("a"), host("b"));
    let refused = || Failure::last("connect to", "refused");
    let away = || Failure::retry("connect to", "away");
    let mixed = merge_failures(vec![(&a, refused()), (&b, away())]);
    assert_eq!(mixed.class, RetryClass::Retry);
    assert_eq!(&*mixed.message, "b: away; a: refused");
    let both = merge_failures(vec![(&a, refused()), (&b, refused())]);
    assert_eq!(both.class, RetryClass::Final);
    let alone = merge_failures(vec![(&a, refused())]);
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
