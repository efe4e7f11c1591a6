//! Programs outside the workspace, with `baler` as their only dependency on this workspace.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use baler::{ConsumerConfig, Record};
use baler_connector_kafka::EmbeddedCluster;

use super::{queue, shared_node};
use crate::support::send_orders;

/// The folder of the programs.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

/// Builds the programs beside the test, as `scripts/test` did before; returns their folder.
fn build() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let built = Command::new(env!("CARGO"))
        .arg("build")
        .arg("--manifest-path")
        .arg(examples().join("Cargo.toml"))
        .args(["--workspace", "--all-features"])
        .env("CARGO_TARGET_DIR", profile.parent().unwrap())
        .status()
        .unwrap();
    assert!(built.success());
    profile.to_owned()
}

/// A program in the background, killed when it goes out of scope.
struct Program {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Program {
    fn start(folder: &Path, name: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(folder.join(name));
        command.args(arguments).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Interrupts it, and waits until it has ended successfully.
    fn interrupt(&mut self) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", "INT", &pid]).status();
        assert!(sent.unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Runs a program to its end; returns its standard output.
fn output(folder: &Path, name: &str, arguments: &[&str]) -> String {
    let run = Command::new(folder.join(name)).args(arguments).output();
    let run = run.unwrap();
    assert!(run.status.success(), "{name}: {run:?}");
    String::from_utf8(run.stdout).unwrap()
}

#[test]
fn fifteen_lines_on_either_side_are_enough() {
    for name in ["produce", "consume"] {
        let path = examples().join(format!("src/bin/{name}.rs"));
        let text = fs::read_to_string(path).unwrap();
        let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
        assert!(lines <= 15, "{name} has {lines} lines");
    }
    let programs = build();
    let node = shared_node();
    let cluster = EmbeddedCluster::start("orders", 2).unwrap();
    let topic = format!("kafka://{}/orders", cluster.bootstrap_servers());
    for (to, from) in [
        (queue(&node, "fifteen"), queue(&node, "fifteen")),
        (topic.clone(), topic + "?group.id=fifteen"),
    ] {
        let mut consumer = Program::start(&programs, "consume", &[&from]);
        let report = output(&programs, "produce", &[&to]);
        assert!(
            report.contains("1,001") || report.contains("1001"),
            "{report}"
        );
        let orders: BTreeSet<String> = (0..1_000).map(|_| consumer.line()).collect();
        let sent = (0..1_000).map(|id| format!("{id} item {}", id % 10));
        assert_eq!(orders, sent.collect(), "{from}");
    }
}

/// An order of the web shop.
#[derive(Record)]
#[record(name = "shop.Order")]
struct ShopOrder {
    item: String,
    count: u32,
}

/// Sends an order to the shop; returns the answer.
fn post(address: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!(
        "POST /orders HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_shop_sends_its_orders_and_calls_over_either_broker() {
    let programs = build();
    let node = shared_node();
    let cluster = EmbeddedCluster::start("shop", 2).unwrap();
    let topic = format!("kafka://{}/shop", cluster.bootstrap_servers());
    for (to, from) in [
        (queue(&node, "shop"), queue(&node, "shop")),
        (topic.clone(), topic + "?group.id=shop"),
    ] {
        let mut shop = Program::start(&programs, "shop", &[&to, "127.0.0.1:0"]);
        let address = shop.line().replace("http://", "");
        let answer = post(&address, r#"{"item":"tea","count":2}"#);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.ends_with("order 1\n"), "{answer}");
        let answer = post(&address, r#"{"item":"tea","count":0}"#);
        assert!(answer.starts_with("HTTP/1.1 422"), "{answer}");
        shop.interrupt();
        let mut config: ConsumerConfig = from.parse().unwrap();
        config.idle_timeout = Some(Duration::from_secs(3));
        let mut consumer = baler::consume::<ShopOrder>(config).unwrap();
        let mut orders = Vec::new();
        for batch in &mut consumer {
            let mut batch = batch.unwrap();
            orders.append(&mut batch.take_records());
            batch.ack().unwrap();
        }
        let orders: Vec<_> = orders
            .iter()
            .map(|it| (it.item.as_str(), it.count))
            .collect();
        assert_eq!(orders, [("tea", 2)], "{from}");
        // Two calls for each request, and the record that describes the application.
        assert_eq!(consumer.skipped(), 5, "{from}");
    }
}

#[test]
fn consumers_that_share_a_queue_write_all_records_into_parquet_files() {
    let programs = build();
    let node = shared_node();
    let uri = queue(&node, "parquet");
    send_orders(&uri, 2_000, 20);
    let folder = tempfile::tempdir().unwrap();
    let folders = ["one", "two"].map(|it| folder.path().join(it).display().to_string());
    let mut consumers = folders
        .each_ref()
        .map(|folder| Program::start(&programs, "to_parquet", &[&uri, folder, "5"]));
    let counts = consumers.each_mut().map(|consumer| {
        let line = consumer.line();
        line.split(' ').next().unwrap().parse::<u64>().unwrap()
    });
    assert_eq!(counts.iter().sum::<u64>(), 2_000, "{counts:?}");
    let written = folders.iter().filter(|folder| Path::new(folder).is_dir());
    let expected = counts.iter().filter(|count| **count > 0).count();
    assert_eq!(written.count(), expected);
}
