//! The figures, health and taps of running commands, from outside.

use std::fs;
use std::io::{self, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::support::{Background, Receiver, json, wait_for};

/// Returns the sum of all series of a metric in Prometheus's text.
pub(crate) fn sum(text: &str, metric: &str) -> f64 {
    let values = text.lines().filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let name = series.split('{').next()?;
        (name == metric).then(|| value.parse::<f64>().unwrap())
    });
    values.sum()
}

/// Returns the body of an answer, with any status.
pub(crate) fn get(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address.trim()).unwrap();
    let request = format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let answer = io::read_to_string(stream).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

#[test]
fn last_figures_are_those_of_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("baler.prom");
    let file = file.to_str().unwrap();
    let to = format!("file://{}/chunks", folder.path().display());
    let made = ["generate", "--to", &to, "--records", "5000"];
    let flags = ["--format", "json", "--metrics-file", file];
    let report = json(&[made.as_slice(), &flags].concat());
    let text = fs::read_to_string(file).unwrap();
    for (metric, name) in [
        ("baler_records_emitted_total", "emitted"),
        ("baler_records_delivered_total", "delivered"),
        ("baler_chunks_confirmed_total", "chunks"),
        ("baler_confirmed_bytes_total", "bytes"),
        ("baler_chunk_retries_total", "retries"),
    ] {
        assert_eq!(sum(&text, metric), report[name].as_f64().unwrap(), "{name}");
    }
    assert_eq!(sum(&text, "baler_records_dropped_total"), 0.0);
    assert_eq!(sum(&text, "baler_records_delivered_total"), 5_000.0);

    let receive = ["receive", "--from", &to, "--format", "none"];
    let summary = folder.path().join("summary.json");
    let flags = [
        "--summary",
        summary.to_str().unwrap(),
        "--metrics-file",
        file,
    ];
    crate::support::output(&[receive.as_slice(), &flags].concat());
    let summary = crate::support::read_json(&summary);
    let text = fs::read_to_string(file).unwrap();
    for (metric, name) in [
        ("baler_records_received_total", "records_received"),
        ("baler_chunks_received_total", "chunks"),
        ("baler_chunks_acknowledged_total", "acknowledged"),
        ("baler_received_bytes_total", "bytes"),
        ("baler_chunks_duplicate_total", "duplicates_within_reader"),
        ("baler_producer_lanes", "lanes"),
    ] {
        assert_eq!(
            sum(&text, metric),
            summary[name].as_f64().unwrap(),
            "{name}"
        );
    }
}

#[test]
fn a_running_pair_shows_figures_and_health() {
    let folder = tempfile::tempdir().unwrap();
    let ports = ["receive", "generate"].map(|name| folder.path().join(name));
    let [receive_port, generate_port] = ports.each_ref().map(|path| path.to_str().unwrap());
    let metrics = ["--metrics", "127.0.0.1:0", "--metrics-port-file"];
    let flags = [&metrics[..], &[receive_port]].concat();
    let receiver = Receiver::start(&folder.path().join("out"), &flags);
    let made = [
        "generate",
        "--to",
        &receiver.uri,
        "--records",
        "10M",
        "--rate",
        "2000",
    ];
    let generator = Background::start(&[&made[..], &metrics, &[generate_port]].concat());
    let address = |path| wait_for("an address", || fs::read_to_string(path).ok());
    let (receives, generates) = (address(receive_port), address(generate_port));
    let sent = wait_for("records to be sent", || {
        let (_, text) = get(&generates, "/metrics");
        let sent = sum(&text, "baler_records_delivered_total");
        (sent > 0.0).then_some(sent)
    });
    wait_for("them to be received", || {
        let (_, text) = get(&receives, "/metrics");
        (sum(&text, "baler_records_received_total") >= sent).then_some(())
    });
    let top = ["top", generates.trim(), "--once", "--interval", "500ms"];
    let view = json(&[&top[..], &["--format", "json"]].concat());
    assert_eq!(view["command"], "generate");
    assert_eq!(view["writer"], "open");
    let rate = view["counters"]["records_emitted"]["per_second"].as_f64();
    assert!((500.0..5_000.0).contains(&rate.unwrap()), "{view}");
    let text = crate::support::output(&top);
    for part in [
        "generate",
        &receiver.uri,
        "records delivered",
        "resident memory",
    ] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    for address in [&receives, &generates] {
        assert_eq!(get(address, "/livez").0, 200);
        let (status, body) = get(address, "/readyz");
        assert_eq!(status, 200, "{body}");
    }
    // The medium goes away: the sender is alive and not ready.
    drop(receiver);
    wait_for("the sender to be unready", || {
        (get(&generates, "/readyz").0 == 503).then_some(())
    });
    assert_eq!(get(&generates, "/livez").0, 200);
    drop(generator);
}

/// Silent connections, and connections that have sent half a request, do not delay a scrape.
#[test]
fn metrics_answer_within_a_second_beside_a_thousand_idle_connections() {
    let folder = tempfile::tempdir().unwrap();
    let port_file = folder.path().join("metrics");
    let port_file = port_file.to_str().unwrap();
    let flags = ["--metrics", "127.0.0.1:0", "--metrics-port-file", port_file];
    let receiver = Receiver::start(&folder.path().join("out"), &flags);
    let address = wait_for("an address", || fs::read_to_string(port_file).ok());
    let mut idle = Vec::new();
    for number in 0..1_000 {
        let mut connection = TcpStream::connect(address.trim()).unwrap();
        if number % 2 == 0 {
            // The server may have closed it already.
            connection.write_all(b"GET /metrics HTTP/1.1\r\n").ok();
        }
        idle.push(connection);
        if number % 100 == 99 {
            let asked = Instant::now();
            let (status, text) = get(&address, "/metrics");
            let took = asked.elapsed();
            assert!(took < Duration::from_secs(1), "beside {number}: {took:?}");
            assert!(status == 200 && text.contains("baler_records_received_total"));
        }
    }
    receiver.process.signal("TERM");
    receiver.succeed();
}

#[test]
fn top_says_what_it_cannot_look_at() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let gone = crate::support::baler(&["top", &address, "--once"]).code(69);
    let told = String::from_utf8(gone.get_output().stderr.clone()).unwrap();
    assert!(
        told.contains(&format!("cannot read http://{address}/metrics")),
        "{told}"
    );
    let no_terminal = crate::support::baler(&["top", &address]).code(78);
    let told = String::from_utf8(no_terminal.get_output().stderr.clone()).unwrap();
    assert!(told.contains("use --once"), "{told}");
}
