use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use super::*;

#[test]
fn every_byte_is_counted_once_both_ways_and_after_the_end() {
    let mut counter = WireCounter::of(std::process::id()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let before = counter.look().unwrap();
    let mut one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut other, _) = listener.accept().unwrap();
    one.write_all(&[1; 100_000]).unwrap();
    other.read_exact(&mut [0; 100_000]).unwrap();
    other.write_all(&[2; 7]).unwrap();
    one.read_exact(&mut [0; 7]).unwrap();
    // Both ends belong to this process.
    assert_eq!(counter.look().unwrap() - before, 200_014);
    drop((one, other));
    assert!(counter.look().unwrap() - before >= 200_014);
}

#[test]
fn a_cut_answer_is_no_answer() {
    assert_eq!(message(&[1, 2, 3]), None);
    assert_eq!(connection(&[0; 80]), None);
    assert_eq!(bytes(&[0; 207]), None);
}
