//! A service of axum that is instrumented with `tracing`, and with probes beside it: many requests on
//! eight threads, requests whose client goes away, and spans that never close.

use std::collections::BTreeMap;
use std::future;
use std::mem;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Request};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::{Router, routing::get};
use baler_common::record::Value;
use baler_monitoring::probe;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tracing::{Instrument as _, info_span, instrument};

use super::support::{Entry, Recording, Records};

const CLIENTS: u64 = 32;
const REQUESTS: u64 = 25;
const CANCELLED: u64 = 10;

async fn in_a_span(request: Request, next: Next) -> Response {
    let span = info_span!("request", path = request.uri().path());
    next.run(request).instrument(span).await
}

#[instrument]
async fn order(Path(id): Path<u64>) -> String {
    let prices = [price(id, 1), price(id, 2)].map(|it| it.in_current_span());
    let [first, second] = prices.map(tokio::spawn);
    let total = first.await.unwrap() + second.await.unwrap() + stock(id);
    total.to_string()
}

#[instrument]
async fn price(id: u64, part: u64) -> u64 {
    // Other requests go on here, on this thread and on others.
    for _ in 0..id % 8 {
        tokio::task::yield_now().await;
    }
    convert(id * part)
}

#[probe]
fn stock(id: u64) -> u64 {
    id % 2
}

#[probe]
fn convert(price: u64) -> u64 {
    info_span!("rate").in_scope(|| price / 2)
}

#[instrument(skip(begun))]
async fn never_answered(begun: Arc<Notify>) -> String {
    begun.notify_one();
    future::pending().await
}

async fn leaking() -> &'static str {
    mem::forget(info_span!("leaked"));
    "leaked"
}

/// Sends a request and returns the answer's body.
async fn ask(connection: &mut TcpStream, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: shop\r\n\r\n");
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    loop {
        let mut bytes = [0; 1024];
        let read = connection.read(&mut bytes).await.unwrap();
        assert_ne!(read, 0, "the service closed the connection: {answer}");
        answer.push_str(str::from_utf8(&bytes[..read]).unwrap());
        let Some((head, body)) = answer.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.split("content-length: ").nth(1).unwrap();
        let length = length.split_whitespace().next().unwrap();
        if body.len() == length.parse::<usize>().unwrap() {
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
            return body.to_owned();
        }
    }
}

async fn run(address: SocketAddr, begun: &Notify) {
    let clients = (0..CLIENTS).map(|client| {
        tokio::spawn(async move {
            let mut connection = TcpStream::connect(address).await.unwrap();
            for number in 0..REQUESTS {
                let id = client * REQUESTS + number;
                let total = ask(&mut connection, &format!("/order/{id}")).await;
                assert_eq!(total, (id / 2 + id + id % 2).to_string());
            }
        })
    });
    let clients: Vec<_> = clients.collect();
    for _ in 0..CANCELLED {
        let mut connection = TcpStream::connect(address).await.unwrap();
        let request = b"GET /never HTTP/1.1\r\nhost: shop\r\n\r\n";
        connection.write_all(request).await.unwrap();
        begun.notified().await;
        drop(connection);
    }
    let mut connection = TcpStream::connect(address).await.unwrap();
    assert_eq!(ask(&mut connection, "/leak").await, "leaked");
    for client in clients {
        client.await.unwrap();
    }
}

fn serve_and_ask() -> Records {
    let recording = Recording::start();
    let runtime = recording.runtime(8);
    runtime.block_on(async {
        let begun = Arc::new(Notify::new());
        let waits = Arc::clone(&begun);
        let service = Router::new()
            .route("/order/{id}", get(order))
            .route("/never", get(move || never_answered(waits)))
            .route("/leak", get(leaking))
            .layer(middleware::from_fn(in_a_span));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async { axum::serve(listener, service).await });
        let client = tokio::spawn(async move { run(address, &begun).await });
        client.await.unwrap();
    });
    // It cancels what is left, also requests whose client has gone away.
    runtime.shutdown_timeout(Duration::from_secs(10));
    recording.finish()
}

/// The number of an order, in the attribute of a span.
fn number(span: &Entry) -> Option<&str> {
    let Value::String(path) = span.fields.get("path").map(|it| &it.1)? else {
        return None;
    };
    path.strip_prefix("/order/")
}

#[test]
fn spans_of_a_service_have_the_right_parents() {
    let records = serve_and_ask();
    records.assert_paired();
    let spans: BTreeMap<_, _> = records
        .starts()
        .into_iter()
        .map(|it| (it.id(), it))
        .collect();
    let named = |name: &str| {
        let named = records.ends().into_iter();
        let named = named.filter(|it| it.text("name") == name);
        named.collect::<Vec<_>>()
    };
    let parent = |span: &Entry| *spans.get(&span.parent()).unwrap();

    let orders = named("order");
    assert_eq!(orders.len() as u64, CLIENTS * REQUESTS);
    for order in &orders {
        let request = parent(order);
        assert_eq!((request.text("name"), request.parent()), ("request", 0));
        assert_eq!(order.trace(), request.trace());
        let id = number(request).unwrap();
        assert_eq!(order.text("id"), id);
    }
    let prices = named("price");
    assert_eq!(prices.len(), 2 * orders.len());
    for price in prices {
        let order = parent(price);
        assert_eq!(order.text("name"), "order");
        assert_eq!(
            number(parent(order)).unwrap(),
            price.unsigned("id").to_string()
        );
    }
    assert!(
        named("rate")
            .iter()
            .all(|it| parent(it).text("name") == "price")
    );

    // Nobody waits for these answers any more: both spans of each end.
    let cancelled = named("never_answered");
    assert_eq!(cancelled.len() as u64, CANCELLED);
    for span in cancelled {
        let request = parent(span);
        assert_eq!(request.text("path"), "/never");
        assert!(named("request").iter().any(|it| it.id() == request.id()));
    }
    // This one never ends, and its start says so.
    assert!(named("leaked").is_empty());
    let leaked: Vec<_> = spans
        .values()
        .filter(|it| it.text("name") == "leaked")
        .collect();
    assert_eq!(leaked.len(), 1);
    assert_eq!(parent(leaked[0]).text("path"), "/leak");
}

#[test]
fn probes_of_a_service_are_in_the_traces_of_its_spans() {
    let records = serve_and_ask();
    let mut traces: BTreeMap<i64, Vec<&Entry>> = BTreeMap::new();
    for entry in records.0.iter().filter(|it| it.has("tout")) {
        traces
            .entry(entry.signed("traceId"))
            .or_default()
            .push(entry);
    }
    let mut orders = 0;
    for trace in traces.values() {
        let calls = |operation: &str| {
            let calls = trace.iter();
            let calls = calls.filter(|it| it.text("operationSignature").contains(operation));
            calls.map(|it| it.signed("ess")).collect::<Vec<_>>()
        };
        if calls("stock").is_empty() {
            continue;
        }
        orders += 1;
        // request -> order -> stock, and order -> price -> convert -> rate, twice.
        assert_eq!(calls("stock"), [2]);
        assert_eq!(calls("convert"), [3, 3]);
        assert_eq!(trace.len(), 2 + 1 + 2 * 3);
        let mut places: Vec<_> = trace.iter().map(|it| it.signed("eoi")).collect();
        places.sort_unstable();
        assert_eq!(places, (0..9).collect::<Vec<_>>());
    }
    assert_eq!(orders, CLIENTS * REQUESTS);
}
