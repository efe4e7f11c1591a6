//! The answers of a server over HTTP: strict text, health, taps, and bounds.

mod deployed;
mod probes;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use baler_analysis::Source;
use baler_common::container::Limits;
use baler_common::transport::{
    Chunk, ChunkIdentity, ChunkMeta, ContainerKind, Epoch, LaneLag, ProducerId,
};
use baler_connector_kieker::types::EmptyRecord;
use baler_monitoring::Controller;
use serde_json::Value;

use super::exposition::Exposition;
use super::metric::{self, Kind};
use super::observable::{Check, Observable};
use super::*;
use crate::{endpoint, http_client};

fn observed() -> (Arc<Observed>, Shutdown) {
    let shutdown = Shutdown::new(Duration::from_secs(10));
    (Arc::new(Observed::new("test", &shutdown, None)), shutdown)
}

fn controller(to: &str) -> Controller {
    let writer = endpoint::writer(to).unwrap().writer;
    Controller::builder(writer)
        .metadata_record(false)
        .start()
        .unwrap()
}

fn serve(observed: &Arc<Observed>, taps: Taps) -> Server {
    let service = Service {
        observed: Arc::clone(observed),
        ready_age: Duration::from_millis(1),
        is_local: true,
        taps,
        tap_patience: Duration::from_millis(200),
    };
    Server::start(SocketAddr::from(([127, 0, 0, 1], 0)), service).unwrap()
}

/// Returns the status, the content type and the body of an answer.
fn get(server: &Server, path: &str) -> (u16, String, String) {
    let answer = request(server, "GET", path);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let (_, content_type) = head.split_once("content-type: ").unwrap();
    let content_type = content_type.lines().next().unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, content_type.to_owned(), body.to_owned())
}

/// Returns the head and the body of an answer.
fn request(server: &Server, method: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let request = format!("{method} {path} HTTP/1.0\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    std::io::read_to_string(stream).unwrap()
}

/// Returns the value of a series without labels.
fn value(text: &str, name: &str) -> f64 {
    let line = text
        .lines()
        .find(|line| line.split(' ').next() == Some(name));
    line.unwrap().split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn figures_are_those_of_the_final_report() {
    let (observed, _) = observed();
    let controller = controller("null:");
    observed.sends(&controller);
    let server = serve(&observed, Taps::Open);
    for _ in 0..1_234 {
        controller.emit(&EmptyRecord {});
    }
    controller.flush(Duration::from_secs(60)).unwrap();
    let (status, content_type, running) = get(&server, "/metrics");
    assert_eq!(
        (status, content_type.as_str()),
        (200, "text/plain; version=0.0.4")
    );
    assert_eq!(value(&running, "baler_records_delivered_total"), 1_234.0);
    assert_eq!(value(&running, "baler_writer_connected"), 1.0);
    assert_eq!(value(&running, "baler_oldest_unconfirmed_seconds"), 0.0);
    let report = controller.shutdown(Duration::from_secs(60));
    let (_, _, ended) = get(&server, "/metrics");
    let stats = &report.stats;
    for (name, figure) in [
        ("baler_records_emitted_total", stats.emitted),
        ("baler_records_delivered_total", stats.delivered),
        ("baler_chunks_encoded_total", stats.chunks_encoded),
        ("baler_chunks_confirmed_total", stats.chunks_delivered),
        ("baler_confirmed_bytes_total", stats.bytes_delivered),
        ("baler_row_bytes_total", stats.row_bytes),
        ("baler_encoded_bytes_total", stats.encoded_bytes),
        (
            "baler_chunks_closed_total{trigger=\"flush\"}",
            stats.closed_by.flush,
        ),
        (
            "baler_chunks_closed_total{trigger=\"records\"}",
            stats.closed_by.records,
        ),
    ] {
        assert_eq!(value(&ended, name), figure as f64, "{name}");
    }
    assert!(value(&ended, "process_cpu_seconds_total") > 0.0);
    assert!(value(&ended, "process_resident_memory_bytes") > 1e6);
}

#[test]
fn exposition_is_strict_and_holds_only_metrics_of_the_list() {
    let (observed, _) = observed();
    let sender = controller("null:");
    observed.sends(&sender);
    observed.endpoint("sink", "file:///a \"b\"");
    let reader = endpoint::open_reader("null:", false).unwrap().reader;
    observed.receives(Source::new(reader).watch());
    observed.add(Box::new(baler_connector_file::spool::SpoolWatch::default()));
    let text = observed.metrics();
    let lines = text.lines().map(|line| Ok(line.to_owned()));
    let scrape = prometheus_parse::Scrape::parse(lines).unwrap();
    let mut last = 0;
    for sample in &scrape.samples {
        let position = metric::ALL.iter().position(|it| it.name == sample.metric);
        let position = position.unwrap_or_else(|| panic!("{} is not in the list", sample.metric));
        assert!(position >= last, "{} is out of order", sample.metric);
        last = position;
        let metric = metric::ALL[position];
        let mut labels: Vec<_> = sample.labels.keys().map(String::as_str).collect();
        let mut expected = metric.labels.to_vec();
        labels.sort_unstable();
        expected.sort_unstable();
        assert_eq!(labels, expected, "{}", metric.name);
        let kind = match sample.value {
            prometheus_parse::Value::Counter(_) => Kind::Counter,
            prometheus_parse::Value::Gauge(_) => Kind::Gauge,
            _ => panic!("{sample:?}"),
        };
        assert_eq!(kind, metric.kind, "{}", metric.name);
    }
    // Metrics that only some media or values report are absent here. All others are present.
    let absent = [
        "baler_writer_events_total",
        "baler_reader_connected",
        "baler_reader_events_total",
        "baler_lanes_assigned",
        "baler_lane_lag_chunks",
        "baler_lag_chunks",
        "baler_records_undecided_total",
    ];
    for metric in metric::ALL {
        let is_there = scrape.samples.iter().any(|it| it.metric == metric.name);
        assert_eq!(is_there, !absent.contains(&metric.name), "{}", metric.name);
    }
    promtool(&text);
}

/// A reader of two partitions, or one of several readers of a queue.
struct Behind(&'static [(&'static str, u64)]);

impl Observable for Behind {
    fn expose(&self, exposition: &mut Exposition, _: Instant) {
        for (lane, chunks) in self.0 {
            exposition.set(&metric::LANE_LAG, &["0", lane], *chunks);
        }
    }

    fn lag(&self) -> Vec<LaneLag> {
        let lag = self.0.iter().map(|(lane, chunks)| LaneLag {
            lane: (*lane).into(),
            chunks: *chunks,
        });
        lag.collect()
    }

    fn checks(&self, _: Duration, _: Instant) -> Vec<Check> {
        Vec::new()
    }
}

#[test]
fn lag_of_a_lane_that_several_tell_of_counts_once() {
    let (observed, _) = observed();
    // Two members of a group, with partitions of their own.
    observed.add(Box::new(Behind(&[("0", 5), ("1", 7)])));
    observed.add(Box::new(Behind(&[("2", 11)])));
    assert_eq!(value(&observed.metrics(), "baler_lag_chunks"), 23.0);
    // Three consumers of a queue: each reports the chunks that wait there, and the chunks that it
    // holds.
    for behind in [&[("queue", 101)], &[("queue", 107)], &[("queue", 100)]] {
        observed.add(Box::new(Behind(behind)));
    }
    assert_eq!(value(&observed.metrics(), "baler_lag_chunks"), 130.0);
}

/// Checks the text with Prometheus's own tool.
fn promtool(text: &str) {
    let mut child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool, which `scripts/test` installs");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.trim().is_empty(), "{told}");
}

#[test]
fn metrics_document_names_every_metric_with_its_labels_and_help() {
    let document = include_str!("../../METRICS.md");
    let rows = document
        .lines()
        .filter(|line| line.starts_with("| `baler_") || line.starts_with("| `process_"));
    let rows: Vec<_> = rows.collect();
    let expected: Vec<_> = metric::ALL
        .iter()
        .map(|metric| {
            let labels: Vec<_> = metric
                .labels
                .iter()
                .map(|label| format!("`{label}`"))
                .collect();
            let kind = match metric.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
            };
            format!(
                "| `{}` | {kind} | {} | {} |",
                metric.name,
                labels.join(", "),
                metric.help
            )
        })
        .collect();
    assert_eq!(
        rows,
        expected,
        "cli/METRICS.md should hold:\n{}",
        expected.join("\n")
    );
}

#[test]
fn readiness_fails_while_the_medium_is_away_and_while_draining() {
    let (observed, shutdown) = observed();
    let server = serve(&observed, Taps::Open);
    let (status, content_type, body) = get(&server, "/readyz");
    assert_eq!(
        (status, content_type.as_str()),
        (200, "application/json"),
        "{body}"
    );
    // A port on which no process listens.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let controller = controller(&format!("tcp://127.0.0.1:{port}"));
    observed.sends(&controller);
    controller.emit(&EmptyRecord {});
    let health = loop {
        let (status, _, body) = get(&server, "/readyz");
        assert_eq!(status, 503, "{body}");
        let health: Value = serde_json::from_str(&body).unwrap();
        if health["checks"][2]["seconds"].as_f64().unwrap() > 0.001 {
            break health;
        }
    };
    assert_eq!(health["status"], "unready");
    assert_eq!(health["checks"][0]["name"], "running");
    assert_eq!(health["checks"][1]["name"], "writer");
    assert_eq!(health["checks"][1]["state"], "closed");
    assert_eq!(health["checks"][1]["ok"], false);
    assert_eq!(health["checks"][2]["name"], "oldest_unconfirmed");
    assert_eq!(health["checks"][2]["ok"], false);
    assert_eq!(health["checks"][2]["limit_seconds"], 0.001);
    assert_eq!(get(&server, "/livez").0, 200, "it is alive all the same");
    controller.shutdown(Duration::ZERO);
    shutdown.request();
    let (_, _, body) = get(&server, "/readyz");
    let health: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(health["checks"][0]["ok"], false, "{health}");
}

#[test]
fn unknown_paths_and_methods_are_refused() {
    let (observed, _) = observed();
    let server = serve(&observed, Taps::Closed);
    assert_eq!(get(&server, "/metric").0, 404);
    assert_eq!(get(&server, "/tap").0, 403);
    assert!(request(&server, "POST", "/metrics").starts_with("HTTP/1.0 405"));
}

#[test]
fn a_silent_or_endless_request_neither_lasts_nor_blocks_others() {
    let (observed, _) = observed();
    let server = serve(&observed, Taps::Open);
    let silent: Vec<_> = (0..8)
        .map(|_| TcpStream::connect(server.address()).unwrap())
        .collect();
    let mut endless = TcpStream::connect(server.address()).unwrap();
    endless.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    // Writing fails once the server has had enough.
    let line = format!("x: {}\r\n", "y".repeat(1_000));
    let end = Instant::now() + Duration::from_secs(60);
    while endless.write_all(line.as_bytes()).is_ok() {
        assert!(
            Instant::now() < end,
            "a head without an end is read for ever"
        );
    }
    assert_eq!(get(&server, "/livez").0, 200);
    for mut stream in silent {
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
    }
}

#[test]
fn a_tap_of_a_server_sees_what_its_writer_takes() {
    let (observed, _) = observed();
    let writer = observed.tapped_writer(endpoint::writer("null:").unwrap().writer);
    let controller = Controller::builder(writer)
        .metadata_record(false)
        .start()
        .unwrap();
    let server = serve(&observed, Taps::Open);
    let url = format!("http://{}/tap", server.address());
    let mut body = http_client::get(&url, &[], Duration::from_secs(60)).unwrap();
    assert_eq!(value(&observed.metrics(), "baler_taps"), 1.0);
    controller.emit(&EmptyRecord {});
    controller.flush(Duration::from_secs(60)).unwrap();
    let mut head = [0; tap::FRAME_HEAD];
    body.read_exact(&mut head).unwrap();
    assert_eq!(head[0], tap::CHUNK_FRAME);
    let length = u64::from_be_bytes(head[1..].try_into().unwrap());
    let mut chunk = vec![0; usize::try_from(length).unwrap()];
    body.read_exact(&mut chunk).unwrap();
    let mut decoder = baler::decoder(Limits::default());
    assert_eq!(decoder.decode(&chunk).unwrap().batch.len(), 1);
    // The tap's end is noticed without another chunk.
    drop(body);
    let end = Instant::now() + Duration::from_secs(60);
    while value(&observed.metrics(), "baler_taps") > 0.0 {
        assert!(Instant::now() < end, "the tap is still counted");
        std::thread::yield_now();
    }
    controller.shutdown(Duration::from_secs(10));
}

/// A client that reads nothing does not keep its place among the taps.
#[test]
fn a_tap_whose_client_reads_nothing_ends() {
    let (observed, _) = observed();
    let mut writer = observed.tapped_writer(endpoint::writer("null:").unwrap().writer);
    writer.reopen(Instant::now()).unwrap();
    let server = serve(&observed, Taps::Open);
    let mut client = TcpStream::connect(server.address()).unwrap();
    client
        .write_all(b"GET /tap HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    wait_for_taps(&observed, 1.0, || ());
    let mut ticket = 0;
    wait_for_taps(&observed, 0.0, || {
        // All of them are more than the buffers of a connection hold.
        writer.offer(chunk(ticket, 1 << 20)).unwrap();
        writer.delivery_reports(&mut Vec::new()).unwrap();
        ticket += 1;
    });
    drop(client);
}

fn wait_for_taps(observed: &Observed, taps: f64, mut meanwhile: impl FnMut()) {
    let end = Instant::now() + Duration::from_secs(60);
    while value(&observed.metrics(), "baler_taps") != taps {
        assert!(Instant::now() < end, "waited in vain for {taps} taps");
        meanwhile();
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

fn chunk(ticket: u64, bytes: usize) -> Chunk {
    let identity = ChunkIdentity {
        producer: ProducerId::new(1),
        epoch: Epoch {
            start_unix_ns: 1,
            random: 1,
        },
        lane: 0,
        sequence: ticket,
    };
    Chunk {
        ticket,
        meta: ChunkMeta {
            container: ContainerKind::Native,
            records: 1,
            identity,
        },
        bytes: vec![0; bytes].into(),
    }
}

/// Each request, and the status of its answer.
#[test]
fn other_names_and_missing_tokens_are_refused() {
    let (observed, _) = observed();
    let open = serve(&observed, Taps::Open);
    let guarded = serve(&observed, Taps::Token("Bearer hush".into()));
    for (server, path, name, value, status) in [
        (&open, "/metrics", "host", "localhost:1", 200),
        (&open, "/metrics", "host", "[::1]:1", 200),
        (&open, "/metrics", "host", "evil.example:1", 421),
        (&open, "/metrics", "host", "127.0.0.1.evil.example", 421),
        (&open, "/metrics", "host", "localhost.evil.example", 421),
        (&open, "/tap", "host", "evil.example", 421),
        (&guarded, "/metrics", "x", "y", 200),
        (&guarded, "/tap", "x", "y", 401),
        (&guarded, "/tap", "authorization", "Bearer hus", 401),
        (&guarded, "/tap", "authorization", "Bearer hush2", 401),
        (&guarded, "/tap", "authorization", "Bearer hush", 200),
    ] {
        let url = format!("http://{}{path}", server.address());
        let answer = http_client::get(&url, &[(name, value)], Duration::from_secs(60)).unwrap();
        assert_eq!(answer.status.as_u16(), status, "{path} {name}: {value}");
    }
}
