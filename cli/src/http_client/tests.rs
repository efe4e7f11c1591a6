use std::io::Write as _;
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;

use super::*;

const LIMIT: Duration = Duration::from_secs(60);

/// Starts a server that sends these bytes as soon as it has a request, and then closes the
/// connection. Returns its address, and the request when it is there.
fn server(answer: &'static [u8]) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, request) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        stream.write_all(answer).unwrap();
        sender.send(String::from_utf8(head).unwrap()).unwrap();
    });
    (address, request)
}

fn text(answer: &'static [u8]) -> Result<String, String> {
    let answer = get(&format!("http://{}/", server(answer).0), &[], LIMIT)?;
    answer.text(10, Instant::now() + LIMIT)
}

#[test]
fn a_body_is_read_whole_or_not_at_all() {
    let short = text(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n0123456789");
    assert_eq!(short.unwrap(), "0123456789");
    let long = text(b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n01234567890");
    assert_eq!(long.unwrap_err(), "the answer has more than 10 bytes");
    let until_the_end = text(b"HTTP/1.1 200 OK\r\n\r\n0123");
    assert_eq!(until_the_end.unwrap(), "0123");
    let chunked =
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n01\r\n1\r\n2\r\n0\r\n\r\n";
    assert_eq!(text(chunked).unwrap(), "012");
    for broken in [
        &b""[..],
        b"HTTP/1.1 200 OK\r\n",
        b"220 mail.example ESMTP\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n0123",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n0",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n\xff\xff",
    ] {
        assert!(text(broken).is_err(), "{}", broken.escape_ascii());
    }
}

#[test]
fn a_server_that_is_silent_or_away_is_not_waited_for() {
    let short = Duration::from_millis(50);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let error = get(&format!("http://{address}"), &[], short).unwrap_err();
    assert_eq!(error, "no answer within 50ms");
    drop(silent);
    let error = get(&format!("http://{address}"), &[], LIMIT).unwrap_err();
    assert!(error.contains("refused"), "{error}");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let endless = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // An answer before its request ends the connection.
        assert!(stream.read(&mut [0; 1_024]).unwrap() > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n0").unwrap();
        // The client gives up.
        stream.read_to_end(&mut Vec::new()).unwrap();
    });
    let answer = get(&format!("http://{address}"), &[], LIMIT).unwrap();
    let error = answer.text(10, Instant::now() + short).unwrap_err();
    assert_eq!(error, "the answer does not end in time");
    endless.join().unwrap();
}

#[test]
fn a_request_names_host_path_and_user() {
    let (address, request) = server(b"HTTP/1.1 204 No Content\r\n\r\n");
    let url = format!("http://martin:secret@{address}/a/b?c=d");
    let answer = get(&url, &[("x-one", "1")], LIMIT).unwrap();
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    let request = request.recv().unwrap();
    for line in [
        "GET /a/b?c=d HTTP/1.1\r\n",
        "x-one: 1\r\n",
        &format!("host: {address}\r\n"),
        "authorization: Basic bWFydGluOnNlY3JldA==\r\n",
    ] {
        assert!(request.contains(line), "{line} {request}");
    }
}
