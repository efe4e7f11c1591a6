//! The proxy forwards, freezes and cuts.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use baler_connector_testkit::faults::TcpProxy;

/// A proxy in front of a server that sends back what it gets.
fn echo() -> (TcpProxy, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = TcpProxy::start().unwrap();
    proxy.set_target(Some(listener.local_addr().unwrap()));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // Each connection has its own thread, so that one that never ends does not delay the
            // others.
            thread::spawn(move || {
                let mut bytes = [0; 1024];
                while let Ok(read @ 1..) = stream.read(&mut bytes) {
                    if stream.write_all(&bytes[..read]).is_err() {
                        break;
                    }
                }
            });
        }
    });
    let client = TcpStream::connect(proxy.address()).unwrap();
    (proxy, client)
}

/// Checks that bytes are neither answered nor refused.
fn assert_no_answer(client: &mut TcpStream) {
    client.write_all(b"hello").unwrap();
    let soon = Some(Duration::from_millis(100));
    client.set_read_timeout(soon).unwrap();
    let error = client.read(&mut [0; 5]).unwrap_err();
    assert!(matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut
    ));
}

#[test]
fn proxy_forwards_both_ways() {
    let (proxy, mut client) = echo();
    client.write_all(b"hello").unwrap();
    let mut back = [0; 5];
    client.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"hello");
    assert_eq!(proxy.connections(), 1);
}

#[test]
fn frozen_connection_neither_answers_nor_breaks() {
    let (proxy, mut client) = echo();
    proxy.set_frozen(true);
    assert_no_answer(&mut client);
    proxy.set_frozen(false);
    client.set_read_timeout(None).unwrap();
    let mut back = [0; 5];
    client.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"hello");
}

#[test]
fn connection_is_cut_after_the_given_bytes() {
    let (proxy, mut client) = echo();
    proxy.cut_after(3);
    client.write_all(b"hello").unwrap();
    let mut back = Vec::new();
    // The end may come as a reset.
    client.read_to_end(&mut back).ok();
    assert!(back.len() <= 3, "{back:?}");
}

#[test]
fn abandoned_connection_neither_answers_nor_ends_while_new_ones_work() {
    let (proxy, mut client) = echo();
    client.write_all(b"hello").unwrap();
    let mut back = [0; 5];
    client.read_exact(&mut back).unwrap();
    proxy.abandon();
    assert_no_answer(&mut client);
    let mut other = TcpStream::connect(proxy.address()).unwrap();
    // A test fails instead of hanging, long after any busy machine has answered.
    other
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    other.write_all(b"hello").unwrap();
    other.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"hello");
}
