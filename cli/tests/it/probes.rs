//! Programs whose probes a relay or receiver switches: by a file, and by the operator's commands.
//!
//! The tests speak the bytes of docs/adaptive.md themselves.

mod hostile;

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::relay::RelayProcess;
use crate::support::{Background, DEADLINE, baler, file_uri, golden, json_lines, output, wait_for};

const ORDER: &str = "public void shop.Till.order(int)";
const CLEAR: &str = "public void shop.Cart.clear()";
const TAKE: &str = "public void stock.Store.take(int)";

/// The time in which a switch reaches a program.
const PROMPT: Duration = Duration::from_secs(1);

const RECORD_TYPE: &str = "kieker.common.record.misc.EmptyRecord";

/// A relay into a folder, whose probes are switched.
struct Switching {
    relay: RelayProcess,
    folder: TempDir,
    metrics: String,
}

impl Switching {
    /// Starts it with a token, and with a file of these patterns.
    fn start(patterns: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        fs::write(path("token"), "secret\n").unwrap();
        fs::write(path("patterns"), patterns).unwrap();
        let (file, token, port) = (path("patterns"), path("token"), path("metrics"));
        let mut flags = vec!["--adaptive", &file, "--probes-token", &token];
        flags.extend(["--metrics", "127.0.0.1:0", "--metrics-port-file", &port]);
        let from = "kieker+tcp://127.0.0.1:0?max_age=20ms";
        let to = file_uri(&folder.path().join("chunks"));
        let relay = RelayProcess::start(from, &to, folder.path(), &flags);
        let metrics = wait_for("the address", || fs::read_to_string(&port).ok());
        Self {
            relay,
            metrics: metrics.trim().to_owned(),
            folder,
        }
    }

    fn client(&self, agent: &str) -> Client {
        Client::connect(self.relay.uri.strip_prefix("tcp://").unwrap(), agent)
    }

    /// Changes the file as an editor does.
    fn write_patterns(&self, text: &str) {
        let path = self.folder.path().join("patterns");
        fs::write(path.with_extension("new"), text).unwrap();
        fs::rename(path.with_extension("new"), path).unwrap();
    }

    /// Runs `baler probes`.
    fn probes(&self, args: &[&str]) -> assert_cmd::assert::Assert {
        let token = self.folder.path().join("token");
        let via = [
            "--via",
            &self.metrics,
            "--token-file",
            token.to_str().unwrap(),
        ];
        baler(&[&["probes"], args, &via].concat())
    }

    fn list(&self) -> Value {
        let run = self.probes(&["list", "--format", "json"]).success();
        serde_json::from_slice(&run.get_output().stdout).unwrap()
    }

    /// Sends a request to the endpoint. Returns the status and the body.
    fn request(&self, method: &str, path: &str, token: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.metrics).unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.0\r\nhost: localhost\r\nauthorization: {token}\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let answer = io::read_to_string(stream).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    /// Switches through the endpoint.
    fn switch(&self, action: &str, pattern: &str) -> Value {
        let path = format!("/probes/{action}");
        let (status, body) = self.request("POST", &path, "Bearer secret", pattern);
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    /// The records in the folder.
    fn records(&self) -> usize {
        let chunks = self.folder.path().join("chunks");
        if !chunks.exists() {
            return 0;
        }
        let args = ["receive", "--from", &file_uri(&chunks), "--format", "json"];
        json_lines(&output(&args)).len()
    }
}

/// Something that a program gets.
#[derive(Debug, PartialEq, Eq)]
enum Item {
    End,
    Error(i32),
    Pong(i64),
    Verdicts(Vec<(i32, bool)>),
}

/// A program that speaks the protocol.
struct Client {
    stream: TcpStream,
}

impl Client {
    /// Connects, and says Hello with push and batch, without snapshot.
    fn connect(address: &str, agent: &str) -> Self {
        let mut client = Self::connect_only(address);
        client.hello(agent);
        client
    }

    fn connect_only(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        Self { stream }
    }

    fn hello(&mut self, agent: &str) {
        // Version 2.0, and 2^20 slots.
        let words = [-34, 0x4b44_4232, 2 << 16, 3, 1 << 20];
        self.send(&[ints(&words), text(agent)].concat());
        assert_eq!(self.int(), Some(-34));
        let magic_version_features = [(); 3].map(|()| self.int().unwrap());
        assert_eq!(magic_version_features, [0x4b44_4232, 2 << 16, 3]);
        self.int().unwrap();
        self.text();
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Registers signatures from this slot on, and takes the answers.
    fn register(&mut self, first: i32, signatures: &[&str]) -> Vec<bool> {
        self.send(&request(first, signatures));
        let mut verdicts = Vec::new();
        while verdicts.len() < signatures.len() {
            match self.item() {
                Item::Verdicts(more) => verdicts.extend(more),
                other => panic!("{other:?}"),
            }
        }
        let slots = verdicts.iter().map(|(slot, _)| *slot);
        assert!(slots.eq((first..).take(signatures.len())), "{verdicts:?}");
        verdicts
            .into_iter()
            .map(|(_, is_active)| is_active)
            .collect()
    }

    /// Returns what came by now.
    fn by_now(&mut self) -> Vec<Item> {
        self.send(&ping(7));
        let mut items = Vec::new();
        loop {
            match self.item() {
                Item::Pong(7) => return items,
                item => items.push(item),
            }
        }
    }

    fn item(&mut self) -> Item {
        match self.int() {
            None => Item::End,
            Some(-32) => Item::Verdicts(self.entries(1)),
            Some(-33) => {
                assert_eq!(self.int(), Some(-32));
                let count = self.int().unwrap();
                Item::Verdicts(self.entries(count))
            }
            Some(-35) => {
                let code = self.int().unwrap();
                self.int().unwrap();
                self.text();
                Item::Error(code)
            }
            Some(-37) => {
                let mut number = [0; 8];
                self.stream.read_exact(&mut number).unwrap();
                Item::Pong(i64::from_be_bytes(number))
            }
            Some(other) => panic!("{other}"),
        }
    }

    fn entries(&mut self, count: i32) -> Vec<(i32, bool)> {
        let entry = |_| {
            let slot = self.int().unwrap();
            let mut is_active = [0];
            self.stream.read_exact(&mut is_active).unwrap();
            (slot, is_active == [1])
        };
        (0..count).map(entry).collect()
    }

    fn int(&mut self) -> Option<i32> {
        let mut bytes = [0; 4];
        let read = self.stream.read_exact(&mut bytes);
        read.ok().map(|()| i32::from_be_bytes(bytes))
    }

    fn text(&mut self) {
        let length = self.int().unwrap().try_into().unwrap();
        let mut text = vec![0; length];
        self.stream.read_exact(&mut text).unwrap();
    }
}

fn ints(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|it| it.to_be_bytes()).collect()
}

fn text(text: &str) -> Vec<u8> {
    [&ints(&[text.len().try_into().unwrap()]), text.as_bytes()].concat()
}

fn ping(number: i64) -> Vec<u8> {
    [&ints(&[-36])[..], &number.to_be_bytes()].concat()
}

/// A batch of signatures.
fn request(first: i32, signatures: &[&str]) -> Vec<u8> {
    let mut bytes = ints(&[-38, signatures.len().try_into().unwrap()]);
    for (slot, signature) in (first..).zip(signatures) {
        bytes.extend(ints(&[slot]));
        bytes.extend(text(signature));
    }
    bytes
}

/// A registration of the type of records.
fn registration() -> Vec<u8> {
    [ints(&[-1, 0]), text(RECORD_TYPE)].concat()
}

/// This number of records.
fn records(count: usize) -> Vec<u8> {
    let record = [&ints(&[0])[..], &1_i64.to_be_bytes()].concat();
    record.repeat(count)
}

/// Asserts that a program gets these verdicts and nothing else, in time.
fn gets(client: &mut Client, verdicts: &[(i32, bool)], within: Duration) {
    let started = Instant::now();
    assert_eq!(client.item(), Item::Verdicts(verdicts.to_vec()));
    let elapsed = started.elapsed();
    assert!(elapsed < within, "{elapsed:?}");
    assert_eq!(client.by_now(), []);
}

#[test]
fn a_changed_file_switches_the_difference_and_wrong_lines_are_left_out() {
    let mut switching = Switching::start("- shop.Till.*(..)\nwrong\n");
    let process = &mut switching.relay.process;
    let message = process.wait_for_message("line 2");
    assert!(message.contains("begins with none of"), "{message}");
    let mut client = switching.client("app");
    assert_eq!(
        client.register(0, &[ORDER, CLEAR, TAKE]),
        [false, true, true]
    );

    switching.write_patterns("- shop.Till.*(..)\n\n- (\n- stock.*.*(..)\n");
    gets(&mut client, &[(2, false)], DEADLINE);
    switching.relay.process.wait_for_message("line 3");
    assert_eq!(
        switching.list()["patterns"],
        json!(["- shop.Till.*(..)", "- stock.*.*(..)"])
    );

    // A file that is gone changes nothing.
    fs::remove_file(switching.folder.path().join("patterns")).unwrap();
    switching
        .relay
        .process
        .wait_for_message("the patterns stay as they are");
    assert_eq!(client.by_now(), []);

    // The file replaces all patterns, also those of the endpoint.
    switching.switch("deactivate", "*");
    gets(&mut client, &[(1, false)], PROMPT);
    switching.write_patterns("- shop.Cart.*(..)\n");
    gets(&mut client, &[(0, true), (2, true)], DEADLINE);
    assert_eq!(switching.list()["patterns"], json!(["- shop.Cart.*(..)"]));
    // The same text again is no change, so the endpoint's patterns stay.
    switching.switch("activate", "*");
    gets(&mut client, &[(1, true)], PROMPT);
    switching.write_patterns("- shop.Cart.*(..)\n");
    std::thread::park_timeout(Duration::from_secs(1));
    assert_eq!(client.by_now(), []);
    drop(client);
    assert_eq!(switching.relay.end().1, 0);
}

#[test]
fn operators_list_and_switch_programs_while_records_pass() {
    let switching = Switching::start("");
    // The rule holds for programs that connect later.
    let run = switching
        .probes(&["deactivate", "stock..*.*(..)"])
        .success();
    let message = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(
        message.contains("0 probes of 0 programs switched"),
        "{message}"
    );
    let run = switching.probes(&["list"]).success();
    let shown = String::from_utf8_lossy(&run.get_output().stdout).into_owned();
    assert!(shown.contains("no program is connected"), "{shown}");

    let mut shop = switching.client("shop\u{1b}[31m\n");
    assert_eq!(shop.register(0, &[ORDER, TAKE]), [true, false]);
    let mut cart = switching.client("cart");
    assert_eq!(cart.register(0, &[CLEAR]), [true]);
    let run = switching.probes(&["list"]).success();
    let shown = String::from_utf8_lossy(&run.get_output().stdout).into_owned();
    let steady = shown
        .lines()
        .map(|line| match line.split_once(" at 127.0.0.1:") {
            Some((name, rest)) => format!(
                "{name} at PORT{}\n",
                rest.trim_start_matches(char::is_numeric)
            ),
            None => format!("{line}\n"),
        });
    let steady: String = steady.collect();
    golden("probes.txt", &steady);

    shop.send(&[registration(), records(3)].concat());
    let run = switching.probes(&["deactivate", "shop..*.*(..)"]).success();
    let message = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(
        message.contains("2 probes of 2 programs switched"),
        "{message}"
    );
    gets(&mut shop, &[(0, false)], PROMPT);
    gets(&mut cart, &[(0, false)], PROMPT);
    // A record may follow a verdict.
    shop.send(&records(2));
    assert_eq!(
        switching
            .probes(&["activate", "*.Cart.*(..)"])
            .get_output()
            .status
            .code(),
        Some(0)
    );
    gets(&mut cart, &[(0, true)], PROMPT);
    assert_eq!(shop.by_now(), []);
    let list = switching.list();
    let expected = ["- stock..*.*(..)", "- shop..*.*(..)", "+ *.Cart.*(..)"];
    assert_eq!(list["patterns"], json!(expected));
    let programs = list["programs"].as_array().unwrap();
    assert_eq!(
        programs[0]["signatures"][0],
        json!({"signature": ORDER, "active": false})
    );
    assert_eq!(
        (&programs[1]["agent"], &programs[1]["active"]),
        (&json!("cart"), &json!(1))
    );

    drop((shop, cart));
    wait_for("the programs' end", || {
        (switching.list()["programs"] == json!([])).then_some(())
    });
    wait_for("the records", || (switching.records() == 5).then_some(()));
    assert_eq!(switching.relay.end().1, 0);
}

#[test]
fn receive_switches_probes_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (token, port, metrics) = (path("token"), path("port"), path("metrics"));
    fs::write(&token, "secret").unwrap();
    let mut args = vec!["receive", "--from", "kieker+tcp://127.0.0.1:0"];
    args.extend(["--format", "json", "--count", "1", "--port-file", &port]);
    args.extend(["--metrics", "127.0.0.1:0", "--metrics-port-file", &metrics]);
    args.extend(["--probes-token", &token]);
    let process = Background::start(&args);
    let address = |file: &str| wait_for("an address", || fs::read_to_string(file).ok());
    let mut client = Client::connect(address(&port).trim(), "app");
    assert_eq!(client.register(0, &[ORDER]), [true]);
    let via = address(&metrics);
    let via = ["--via", via.trim(), "--token-file", &token];
    baler(&[&["probes", "deactivate", "*"], &via[..]].concat()).success();
    gets(&mut client, &[(0, false)], PROMPT);
    client.send(&[registration(), records(1)].concat());
    assert_eq!(json_lines(&process.succeed()).len(), 1);
}

/// Runs `baler` for a mistake. Returns the message, which is the only one.
fn mistake(args: &[&str], code: i32) -> String {
    let run = baler(args).code(code);
    String::from_utf8(run.get_output().stderr.clone()).unwrap()
}

#[test]
fn without_the_token_nothing_is_listed_or_switched() {
    let switching = Switching::start("");
    let mut client = switching.client("app");
    assert_eq!(client.register(0, &[ORDER]), [true]);
    for token in [
        "",
        "Bearer",
        "Bearer secre",
        "Bearer secrets",
        "Bearer Secret",
        "Basic secret",
    ] {
        for (method, path) in [
            ("GET", "/probes"),
            ("POST", "/probes/deactivate"),
            ("PUT", "/probes/x"),
        ] {
            let (status, body) = switching.request(method, path, token, "*");
            assert_eq!(status, 401, "{method} {path} {token}");
            assert!(!body.contains(ORDER), "{body}");
        }
    }
    let wrong = switching.folder.path().join("wrong");
    for (text, code, message) in [
        ("secre", 69, "the token is missing or wrong"),
        ("", 78, "holds no token"),
    ] {
        fs::write(&wrong, text).unwrap();
        let via = [
            "--via",
            &switching.metrics,
            "--token-file",
            wrong.to_str().unwrap(),
        ];
        for args in [&["list"][..], &["deactivate", "*"]] {
            let said = mistake(&[&["probes"], args, &via].concat(), code);
            assert!(said.contains(message), "{said}");
        }
    }
    // A web page that makes its name resolve to this machine does not get to the token.
    let mut stream = TcpStream::connect(&switching.metrics).unwrap();
    let request =
        "GET /probes HTTP/1.0\r\nhost: evil.example\r\nauthorization: Bearer secret\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let answer = io::read_to_string(stream).unwrap();
    assert!(answer.starts_with("HTTP/1.0 421"), "{answer}");

    assert_eq!(client.by_now(), []);
    assert_eq!(switching.list()["patterns"], json!([]));
}

#[test]
fn wrong_patterns_and_requests_are_refused_and_change_nothing() {
    let switching = Switching::start("");
    let mut client = switching.client("app");
    assert_eq!(client.register(0, &[ORDER]), [true]);
    for (pattern, message) in [
        ("shop", "pattern"),
        ("", "pattern"),
        ("%[", "pattern"),
        (&"x".repeat(3_000), "longer than 2,048 bytes"),
    ] {
        let run = switching.probes(&["deactivate", pattern]).code(78);
        let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(said.contains(message), "{said}");
    }
    let request =
        |method, path, body: &str| switching.request(method, path, "Bearer secret", body).0;
    assert_eq!(
        request("POST", "/probes/deactivate", &"x".repeat(8 << 20)),
        413
    );
    assert_eq!(request("POST", "/probes/remove", "*"), 404);
    assert_eq!(request("GET", "/probes/deactivate", "*"), 404);
    assert_eq!(request("POST", "/probes", "*"), 404);
    assert_eq!(client.by_now(), []);
    assert_eq!(switching.list()["patterns"], json!([]));
}

#[test]
fn the_endpoint_is_off_without_a_token_and_stays_on_loopback() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (token, port, missing) = (path("token"), path("metrics"), path("missing"));
    fs::write(&token, "secret").unwrap();
    let relay = [
        "relay",
        "--from",
        "kieker+tcp://127.0.0.1:0",
        "--to",
        "null:",
    ];
    let with = |flags: &[&'static str]| -> Vec<String> {
        let flags = flags.iter().map(|flag| match *flag {
            "TOKEN" => token.clone(),
            "MISSING" => missing.clone(),
            other => other.to_owned(),
        });
        relay.map(str::to_owned).into_iter().chain(flags).collect()
    };
    for (flags, code, message) in [
        (&["--probes-token", "TOKEN"][..], 2, "--metrics"),
        (&["--probes-remote", "--metrics", "0"], 2, "--probes-token"),
        (
            &["--probes-token", "TOKEN", "--metrics", "0.0.0.0:0"],
            78,
            "--probes-remote allows it",
        ),
        (
            &["--probes-token", "MISSING", "--metrics", "0"],
            78,
            "cannot read",
        ),
        (&["--adaptive", "MISSING"], 78, "cannot read"),
        (
            &["--adaptive", "TOKEN", "--adaptive-dialect", "java"],
            2,
            "strict",
        ),
    ] {
        let args = with(flags);
        let said = mistake(&args.iter().map(String::as_str).collect::<Vec<_>>(), code);
        assert!(said.contains(message), "{said}");
    }
    let tcp = [
        "relay",
        "--from",
        "tcp://127.0.0.1:0",
        "--to",
        "null:",
        "--adaptive",
        &token,
    ];
    let said = mistake(&tcp, 78);
    assert!(said.contains("kieker+tcp"), "{said}");

    let serve = |flags: &[&str]| {
        fs::remove_file(&port).ok();
        let process = Background::start(&[&relay, flags, &["--metrics-port-file", &port]].concat());
        let address = wait_for("the address", || fs::read_to_string(&port).ok());
        (process, address.trim().to_owned())
    };
    let (process, via) = serve(&["--metrics", "0"]);
    let list = ["probes", "list", "--via", &via, "--token-file", &token];
    let said = mistake(&list, 69);
    assert!(
        said.contains("404") && said.contains("--probes-token"),
        "{said}"
    );
    drop(process);
    let said = mistake(&list, 69);
    assert!(said.contains(&via), "{said}");
    let flags = [
        "--metrics",
        "0.0.0.0:0",
        "--probes-token",
        &token,
        "--probes-remote",
    ];
    let (_process, via) = serve(&flags);
    let via = via.replace("0.0.0.0", "127.0.0.1");
    baler(&["probes", "list", "--via", &via, "--token-file", &token]).success();
}
