//! Unix sockets, TLS, and the headers of the settings.

use std::convert::Infallible;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use baler_common::transport::tls::TlsFiles;
use baler_common::transport::uri::Uri;
use baler_common::transport::{
    ChunkReader as _, ChunkWriter as _, Outcome, RetryClass, TransportError, Verdict,
};
use baler_connector_otlp::{
    MEDIUM, OtlpReader, OtlpReaderConfig, OtlpWriter, OtlpWriterConfig, SCHEME_TLS,
};
use baler_connector_testkit::{certificates, within_patience};
use hyper::service::service_fn;
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::{ClientConnection, DEFAULT_VERSIONS};
use tempfile::TempDir;

use crate::support::{chunk_of, count, fate, log, open, receive, report, soon};

fn bind(uri: &str) -> Result<OtlpReader, TransportError> {
    OtlpReader::bind(OtlpReaderConfig::from_uri(Uri::parse(uri).unwrap()).unwrap())
}

fn writer(uri: &str) -> OtlpWriterConfig {
    OtlpWriterConfig::from_uri(Uri::parse(uri).unwrap()).unwrap()
}

/// Sends a chunk from a writer to a reader, which acknowledges it.
fn pass(writer: &OtlpWriterConfig, reader: &mut OtlpReader) {
    let mut writer = open(writer.clone());
    writer.offer(chunk_of(1, &[log("x")])).unwrap();
    let delivery = receive(reader);
    reader.settle(delivery.token, Verdict::Ack).unwrap();
    assert!(matches!(report(&mut writer).outcome, Outcome::Confirmed));
}

/// A request of OTLP/HTTP without records.
const EMPTY: &[u8] =
    b"POST /v1/logs HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\
    Content-Type: application/json\r\n\r\n{}";

#[test]
fn a_unix_socket_takes_grpc_and_http_until_it_closes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("otlp.sock");
    let uri = format!("otlp+unix:{}", path.display());
    let factory = (MEDIUM.receiver)(Uri::parse(&uri).unwrap(), false).unwrap();
    let opened = factory.open().unwrap();
    assert_eq!((opened.listens_on, &opened.warning), (None, &None));
    assert_eq!(opened.reader.waits_for(), Some("sender"));
    opened.reader.close(soon());
    assert!(!path.exists());

    let mut reader = bind(&uri).unwrap();
    pass(&writer(&uri), &mut reader);
    assert_eq!(reader.waits_for(), None);
    let mut http = UnixStream::connect(&path).unwrap();
    http.write_all(EMPTY).unwrap();
    let mut answer = String::new();
    http.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    drop(reader);
    assert!(!path.exists());
}

#[test]
fn only_the_socket_of_a_dead_process_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("otlp.sock");
    let uri = format!("otlp+unix:{}", path.display());
    // The file of a socket stays when its process ends.
    drop(UnixListener::bind(&path).unwrap());
    let mut reader = bind(&uri).unwrap();
    let error = bind(&uri).unwrap_err().to_string();
    assert!(error.contains("another process listens there"), "{error}");
    pass(&writer(&uri), &mut reader);
    assert_eq!(count(&reader.stats().counts, "requests"), 1);
    drop(reader);

    fs::write(&path, "precious").unwrap();
    let error = bind(&uri).unwrap_err().to_string();
    assert!(error.contains("the file is no socket"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

fn issued() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    certificates::issue(folder.path());
    folder
}

/// A reader with TLS that trusts this authority, and its port.
fn secure(folder: &Path, authority: Option<&str>) -> (OtlpReader, u16) {
    let settings = certificates::settings(folder, authority, Some("one"));
    let reader = bind(&format!("{SCHEME_TLS}://127.0.0.1:0?{settings}")).unwrap();
    let port = reader.local_addr().unwrap().port();
    (reader, port)
}

#[test]
fn requests_pass_over_tls_by_grpc_and_http() {
    let folder = issued();
    let settings = |authority, own| certificates::settings(folder.path(), authority, own);
    let trusting = settings(Some("authority"), None);
    let known = settings(Some("authority"), Some("two"));
    for (authority, own) in [(None, &trusting), (Some("authority"), &known)] {
        let (mut reader, port) = secure(folder.path(), authority);
        for scheme in ["otlp+tls", "otlp+https"] {
            pass(
                &writer(&format!("{scheme}://127.0.0.1:{port}?{own}")),
                &mut reader,
            );
        }
        // A sender without TLS is only counted.
        let mut plain = TcpStream::connect(reader.local_addr().unwrap()).unwrap();
        plain.write_all(EMPTY).unwrap();
        within_patience("it is counted", || {
            (count(&reader.stats().counts, "connections_without_tls") == 1).then_some(())
        });
    }
}

#[test]
fn receivers_that_are_not_trusted_get_no_request() {
    let folder = issued();
    let settings = |authority| certificates::settings(folder.path(), Some(authority), None);
    let (reader, port) = secure(folder.path(), None);
    let cases = [
        ("127.0.0.1", settings("stranger"), "UnknownIssuer"),
        ("localhost", settings("authority"), "not valid for"),
        ("127.0.0.1", String::new(), "cacertfile"),
        ("127.0.0.1", settings("nobody"), "nobody.pem"),
    ];
    for (host, settings, reason) in cases {
        for scheme in ["otlp+tls", "otlp+https"] {
            let config = writer(&format!("{scheme}://{host}:{port}?{settings}"));
            let error = OtlpWriter::new(config).reopen(soon()).unwrap_err();
            assert_eq!(error.class, RetryClass::Final, "{error}");
            assert!(error.to_string().contains(reason), "{error}, not {reason}");
        }
    }
    assert_eq!(count(&reader.stats().counts, "requests"), 0);
}

#[test]
fn senders_without_the_demanded_certificate_are_refused() {
    let folder = issued();
    let (mut reader, port) = secure(folder.path(), Some("authority"));
    for own in [None, Some("third")] {
        let settings = certificates::settings(folder.path(), Some("authority"), own);
        // TLS 1.3 tells a sender of the refusal after its own part of the handshake.
        let mut writer =
            OtlpWriter::new(writer(&format!("otlp+tls://127.0.0.1:{port}?{settings}")));
        let error = match writer.reopen(soon()) {
            Err(error) => error,
            Ok(()) => {
                writer.offer(chunk_of(1, &[log("x")])).ok();
                within_patience("it is refused", || {
                    writer.delivery_reports(&mut Vec::new()).err()
                })
            }
        };
        assert!(error.is_retryable(), "{error}");
    }
    within_patience("both are counted", || {
        (count(&reader.stats().counts, "connections_without_tls") == 2).then_some(())
    });
    reader.set_demand(1);
    let idle = reader.receive(std::time::Instant::now()).unwrap();
    assert!(
        matches!(idle, baler_common::transport::Received::Idle),
        "{idle:?}"
    );
}

#[test]
fn a_receiver_names_both_protocols_in_the_handshake() {
    let folder = issued();
    let (_reader, port) = secure(folder.path(), None);
    let settings = certificates::settings(folder.path(), Some("authority"), None);
    let mut uri = Uri::parse(&format!("x+tls://127.0.0.1?{settings}")).unwrap();
    let files = TlsFiles::take(&mut uri, "x+tls").unwrap().unwrap();
    let authorities = files.required_authorities(fs::read).unwrap();
    let client = files.client(fs::read, DEFAULT_VERSIONS, authorities, "127.0.0.1");
    let (mut config, name) = client.unwrap();
    for (offered, chosen) in [
        (&["h2"][..], "h2"),
        (&["http/1.1"], "http/1.1"),
        (&["http/1.1", "h2"], "h2"),
    ] {
        Arc::make_mut(&mut config).alpn_protocols =
            offered.iter().map(|it| it.as_bytes().to_vec()).collect();
        let mut client = ClientConnection::new(Arc::clone(&config), name.clone()).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        while client.is_handshaking() {
            client.complete_io(&mut stream).unwrap();
        }
        assert_eq!(client.alpn_protocol(), Some(chosen.as_bytes()));
    }
}

/// A receiver that refuses every request, by gRPC and HTTP. Returns its port, and the headers of
/// requests.
fn refusing() -> (u16, mpsc::Receiver<hyper::HeaderMap>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    listener.set_nonblocking(true).unwrap();
    let (sender, headers) = mpsc::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let serving = async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        while let Ok((stream, _)) = listener.accept().await {
            let service = service_fn(|request: Request<Incoming>| {
                sender.send(request.headers().clone()).ok();
                let body = http_body_util::Empty::<bytes::Bytes>::new();
                let refusal = Response::builder().status(401).body(body).unwrap();
                async { Ok::<_, Infallible>(refusal) }
            });
            let builder = auto::Builder::new(TokioExecutor::new());
            builder
                .serve_connection(TokioIo::new(stream), service)
                .await
                .ok();
        }
    };
    thread::spawn(move || runtime.block_on(serving));
    (port, headers)
}

#[test]
fn headers_of_the_settings_arrive_and_never_show() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headers");
    fs::write(&file, "authorization=Basic hush, hush\n").unwrap();
    for scheme in ["otlp", "otlp+http"] {
        let (port, headers) = refusing();
        let uri = format!(
            "{scheme}://127.0.0.1:{port}?headers=api-key=hush%20ed,tenant=a&headers_file={}",
            file.display()
        );
        let uri = Uri::parse(&uri).unwrap();
        let shown = uri.to_string();
        let config = OtlpWriterConfig::from_uri(uri).unwrap();
        let shown = format!("{shown} {config} {config:?}");
        let mut writer = open(config);
        let refusal = fate(&mut writer, chunk_of(1, &[log("x")])).unwrap_err();
        assert!(refusal.contains("HTTP status 401"), "{refusal}");
        let shown = format!("{shown} {writer:?} {refusal}");
        assert!(!shown.contains("hush"), "{shown}");
        let headers = headers.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(headers["api-key"], "hush ed");
        assert_eq!(headers["tenant"], "a");
        assert_eq!(headers["authorization"], "Basic hush, hush");
        assert_eq!(headers.get_all("user-agent").iter().count(), 1);
    }
    let missing = writer("otlp://127.0.0.1:1?headers_file=/nowhere/headers");
    let error = OtlpWriter::new(missing).reopen(soon()).unwrap_err();
    assert!(
        error.to_string().contains("headers_file /nowhere/headers"),
        "{error}"
    );
}
