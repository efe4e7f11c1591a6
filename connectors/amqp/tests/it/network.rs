//! A network that stalls, swallows, cuts and slows down, by a proxy.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader, ChunkWriter};
use baler_connector_testkit::faults::{RabbitMqNode, TcpProxy};
use baler_connector_testkit::{PATIENCE, within_patience};

use crate::support::{declared, fresh_name, reader, shared_node, writer};
use crate::traffic::{Order, Traffic};

/// A proxy to the shared node, and a queue's URI through it.
fn through_a_proxy(name: &str, settings: &str) -> (RabbitMqNode, TcpProxy, String) {
    let node = shared_node();
    let proxy = TcpProxy::start().unwrap();
    proxy.set_target(Some(node.address()));
    let rest = format!("?queue={}{settings}", fresh_name(name));
    declared(&node.uri(&rest));
    let uri = format!("amqp://{}{rest}", proxy.address());
    (node, proxy, uri)
}

#[test]
fn half_open_connection_is_noticed_within_two_heartbeats() {
    let (_node, proxy, uri) = through_a_proxy("half-open", "&heartbeat=1s&single_active=yes");
    let mut traffic = Traffic::new(&uri);
    traffic.confirm(200);
    let start = Instant::now();
    proxy.set_frozen(true);
    // Confirmations of these may be on their way already.
    let offered = traffic.offered();
    within_patience("both ends notice", || {
        traffic.step();
        let connected = traffic.tap.reader().stats().connected == Some(true);
        (traffic.broken() >= 1 && !connected).then_some(())
    });
    let noticed = start.elapsed();
    // The last of these seconds but one is an attempt to connect, through the same proxy.
    assert!(
        noticed < Duration::from_secs(15),
        "noticed after {noticed:?} only"
    );
    assert!(
        traffic.confirmed() <= offered,
        "nothing passes a frozen proxy"
    );
    proxy.cut();
    proxy.set_frozen(false);
    let passed = traffic.pass();
    assert!(
        passed < Duration::from_secs(15),
        "chunks passed after {passed:?} only"
    );
    traffic.confirm(200);
    traffic.end();
}

#[test]
fn stall_shorter_than_the_heartbeat_is_waited_out() {
    let (_node, proxy, uri) = through_a_proxy("stall", "");
    let mut traffic = Traffic::new(&uri);
    for _ in 0..3 {
        traffic.confirm(200);
        proxy.set_frozen(true);
        for _ in 0..50 {
            traffic.step();
        }
        proxy.set_frozen(false);
    }
    traffic.confirm(200);
    assert_eq!((traffic.broken(), traffic.reconnects()), (0, 0));
    traffic.end();
}

#[test]
fn reset_in_the_middle_of_a_chunk_loses_nothing_confirmed() {
    let (node, proxy, uri) = through_a_proxy("reset", "");
    let rest = uri.split_once('?').unwrap().1;
    // The reader comes directly: the writer's chunks are cut.
    let mut traffic = Traffic::between(&uri, &node.uri(&format!("?{rest}"))).of(9000);
    for round in 0..8 {
        traffic.confirm(50);
        let broken = traffic.broken();
        proxy.cut_after(40_000 + 1111 * round);
        traffic.until("the connection is cut", |traffic| traffic.broken() > broken);
    }
    traffic.confirm(50);
    traffic.end();
}

/// Resets the reader's connection again and again under load.
fn reader_is_reset(name: &str, settings: &str, order: Order) {
    let settings = format!("{settings}&reconnect_max=200ms");
    let (node, proxy, uri) = through_a_proxy(name, &settings);
    let rest = uri.split_once('?').unwrap().1;
    let mut traffic = Traffic::between(&node.uri(&format!("?{rest}")), &uri);
    for round in 1..=8 {
        traffic.confirm(100);
        // Else there may be no connection of the reader yet.
        traffic.pass();
        proxy.cut();
        traffic.until("it connects again", |traffic| traffic.reconnects() >= round);
    }
    traffic.confirm(100);
    traffic.order = order;
    traffic.end();
}

#[test]
fn reader_whose_connection_is_reset_gets_everything() {
    // The broker may notice the loss after the new connection, which then gets what follows first.
    reader_is_reset("reset-reader", "", Order::AllButRedelivered);
}

#[test]
fn single_active_reader_gets_everything_in_order_over_its_connections() {
    for queue_type in ["classic", "quorum"] {
        let settings = format!("&single_active=yes&queue_type={queue_type}");
        reader_is_reset("single", &settings, Order::All);
    }
}

#[test]
fn slow_link_delays_and_loses_nothing() {
    let (_node, proxy, uri) = through_a_proxy("slow", "");
    proxy.set_bytes_per_second(Some(500_000));
    proxy.set_delay(Duration::from_millis(5));
    let mut traffic = Traffic::new(&uri).of(5000);
    traffic.confirm(300);
    assert_eq!(traffic.broken(), 0);
    traffic.end();
}

/// How many files are open and how many threads run in this process.
fn open_files_and_threads() -> (usize, usize) {
    let count = |folder| std::fs::read_dir(folder).unwrap().count();
    (count("/proc/self/fd"), count("/proc/self/task"))
}

#[test]
fn fifty_reconnects_leave_no_file_and_no_thread_behind() {
    let (_node, proxy, uri) = through_a_proxy("leak", "&reconnect_max=100ms&single_active=yes");
    let mut traffic = Traffic::new(&uri);
    let reconnect = |traffic: &mut Traffic| {
        let (broken, reconnects) = (traffic.broken(), traffic.reconnects());
        proxy.cut();
        traffic.until("both connect again", |traffic| {
            traffic.broken() > broken && traffic.reconnects() > reconnects
        });
        traffic.pass();
    };
    traffic.pass();
    for _ in 0..5 {
        reconnect(&mut traffic);
    }
    let (files, threads) = open_files_and_threads();
    for _ in 0..50 {
        reconnect(&mut traffic);
    }
    // What is on its way to its end may take a moment.
    within_patience("files and threads are as many as before", || {
        traffic.drive();
        let now = open_files_and_threads();
        (now.0 <= files && now.1 <= threads).then_some(())
    });
    traffic.end();
}

#[test]
fn first_host_that_is_away_leaves_the_others() {
    let node = shared_node();
    // Nothing listens there any more, and there nobody ever answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let hosts = [gone, silent.local_addr().unwrap(), node.address()];
    let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
    let rest = format!("?queue={}&connect_timeout=3s", fresh_name("hosts"));
    let uri = format!("amqp://{}{rest}", hosts.join(","));
    for _ in 0..3 {
        let mut opened = writer(&uri);
        opened.reopen(Instant::now() + PATIENCE).unwrap();
    }
    let mut reader = reader(&uri);
    within_patience("it reads", || {
        reader
            .receive(Instant::now() + Duration::from_millis(50))
            .ok();
        (reader.stats().connected == Some(true)).then_some(())
    });
    let all_away = format!("amqp://{gone},{gone}{rest}");
    let error = writer(&all_away)
        .reopen(Instant::now() + PATIENCE)
        .unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert!(error.message.contains(&gone.to_string()), "{error}");
}
