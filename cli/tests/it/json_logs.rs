//! Logs of JSON as programs write them, through Kafka: every line comes back equal.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Receiver, command, wait_for};

/// How many lines are sent at a time: librdkafka's mock keeps 5 MiB of a partition, read or not.
const SLICE: usize = 20_000;

/// Returns a random number for each line and purpose, always the same: splitmix64.
fn random(line: usize, purpose: u64) -> u64 {
    let seed = u64::try_from(line).unwrap().wrapping_mul(64) + purpose;
    let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Returns one of these, by a random number.
fn one<'a>(of: &[&'a str], number: u64) -> &'a str {
    of[usize::try_from(number).unwrap() % of.len()]
}

/// Returns a line of the log: an access, an event of a code host with nested objects, or a
/// measurement with numbers of every kind.
fn line(number: usize) -> String {
    let at = |purpose| random(number, purpose);
    let (hour, minute, second) = (
        number / 3_600_000 % 24,
        number / 60_000 % 60,
        number / 1_000 % 60,
    );
    let time = format!(
        "2026-11-25T{hour:02}:{minute:02}:{second:02}.{:03}Z",
        number % 1_000
    );
    let user = format!("user-{}", at(0) % 5_000);
    match at(1) % 10 {
        0..6 => {
            let path = one(&["/", "/login", "/cart", "/items", "/search"], at(2));
            let (status, bytes) = (
                one(&["200", "200", "200", "304", "404", "500"], at(3)),
                at(4) % 90_000,
            );
            let address = format!("10.{}.{}.{}", at(5) % 4, at(6) % 256, at(7) % 256);
            // Below 0.00001, serde_json writes an exponent.
            let duration = 1 + at(8) % 99_999;
            format!(
                r#"{{"type":"access","time":"{time}","remote":"{address}","method":"GET","path":"{path}/{}","status":{status},"bytes":{bytes},"seconds":{}.{:05}{},"user":{},"agent":"Mozilla/5.0 (X11; Linux x86_64) Firefox/{}.0"}}"#,
                at(9) % 3_000,
                at(29) % 3,
                duration,
                1 + at(28) % 9,
                if at(10) % 3 == 0 {
                    "null".to_owned()
                } else {
                    format!("\"{user}\"")
                },
                120 + at(11) % 12,
            )
        }
        6..9 => {
            let commits = (0..at(12) % 4).map(|commit| {
                format!(
                    r#"{{"sha":"{:016x}{:016x}","author":{{"name":"{user}","email":"{user}@example.org"}},"message":"Fix \"{}\"\nCloses #{}","distinct":{}}}"#,
                    at(20 + commit),
                    at(30 + commit),
                    one(&["crash", "typo", "leak — again", "naïve loop"], at(40 + commit)),
                    at(13) % 9_000,
                    at(14) % 2 == 0,
                )
            });
            let commits: Vec<String> = commits.collect();
            format!(
                r#"{{"type":"PushEvent","id":"{}","actor":{{"id":{},"login":"{user}","url":"https://api.example.org/users/{user}"}},"repo":{{"id":{},"name":"{user}/project-{}"}},"payload":{{"push_id":{},"size":{},"ref":"refs/heads/main","commits":[{}]}},"public":true,"created_at":"{time}"}}"#,
                20_000_000_000 + number,
                at(0) % 5_000,
                at(15) % 100_000,
                at(15) % 50,
                at(16),
                commits.len(),
                commits.join(","),
            )
        }
        _ => format!(
            r#"{{"type":"metric","time":"{time}","host":"node-{}","small":{},"negative":-{},"large":{},"beyond":{}{},"ratio":{}.{:04}7,"tiny":{}e-30,"exact":0.{}{:019}5,"flags":[true,false,null],"list":[{},{}]}}"#,
            at(17) % 40,
            at(18) % 128,
            at(19),
            u64::MAX - at(20) % 1_000,
            1 + at(21) % 9,
            u64::MAX,
            at(22) % 10,
            at(23) % 10_000,
            1 + at(24) % 9,
            1 + at(25) % 9,
            at(26) % 10_000_000_000,
            at(27) % 100,
            at(28) % 100_000,
        ),
    }
}

/// Runs a program that reads lines from its standard input. Returns its standard output, its
/// standard error, and its processor time in seconds.
fn fed(program: &Command, lines: &str) -> (String, String, f64) {
    let timed = r#"TIMEFORMAT='%U %S'; time "$@""#;
    let mut bash = Command::new("bash");
    bash.args(["-c", timed, "bash"]).arg(program.get_program());
    bash.args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => bash.env(name, value),
            None => bash.env_remove(name),
        };
    }
    let pipes = bash.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = pipes.stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let ended = std::thread::scope(|scope| {
        // A program that ends early is reported by its status.
        scope.spawn(move || input.write_all(lines.as_bytes()).ok());
        child.wait_with_output().unwrap()
    });
    let errors = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.success(), "{errors}");
    let times = errors.trim_end().lines().next_back().unwrap();
    let seconds = times.split(' ').map(|it| it.parse::<f64>().unwrap()).sum();
    (String::from_utf8(ended.stdout).unwrap(), errors, seconds)
}

/// The cost of sending lines.
#[derive(Debug, Default)]
struct Cost {
    seconds: f64,
    bytes: u64,
}

/// Sends lines to Kafka's mock and compares the lines that come back. With `and_kcat`, kcat sends
/// each slice to another topic, too.
fn all_come_back(count: usize, and_kcat: bool) -> (Cost, Cost) {
    let folder = tempfile::tempdir().unwrap();
    let number = count.to_string();
    let from = "kafka+mock:logs?partitions=1";
    let receiver = Receiver::at(from, folder.path(), &["--count", &number]);
    let address = receiver.uri.replace("tcp://", "");
    let to = format!("kafka://{address}/logs");
    let (mut ours, mut kcats) = (Cost::default(), Cost::default());
    let mut received = BufReader::new(File::open(&receiver.output).unwrap());
    for slice in (0..count).step_by(SLICE) {
        let numbers = slice..count.min(slice + SLICE);
        let lines: Vec<String> = numbers.map(line).collect();
        let text = lines.join("\n");
        let send = ["send", "--from", "jsonl:-", "--to", &to, "--format", "json"];
        let (report, _, seconds) = fed(command().args(send), &text);
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["delivered"], lines.len());
        assert_eq!(report["dropped"], json!({}));
        ours.seconds += seconds;
        ours.bytes += report["bytes"].as_u64().unwrap();
        for sent in &lines {
            let mut back = Vec::new();
            wait_for("a line", || {
                // The file may end within a character.
                received.read_until(b'\n', &mut back).unwrap();
                back.ends_with(b"\n").then_some(())
            });
            let back = String::from_utf8(back).unwrap();
            let fields = format!("\"fields\":{sent}}}\n");
            assert!(back.ends_with(&fields), "{sent}\nbecame\n{back}");
        }
        if and_kcat {
            let mut kcat = Command::new("kcat");
            kcat.args(["-P", "-b", &address, "-t", "kcat", "-z", "zstd"]);
            kcats.seconds += fed(&kcat, &text).2;
            // Once more, for the sizes of the messages. Reporting them costs time, so this run is
            // not measured.
            let (_, log, _) = fed(kcat.args(["-X", "debug=msg"]), &text);
            kcats.bytes += log.lines().filter_map(message_set_bytes).sum::<u64>();
        }
    }
    let (_, summary) = receiver.succeed();
    assert_eq!(summary["records"], count);
    (ours, kcats)
}

/// Returns the size in a line of librdkafka's log: `Produce MessageSet with 3 message(s) (123
/// bytes, …`.
fn message_set_bytes(line: &str) -> Option<u64> {
    let (_, sizes) = line.split_once("Produce MessageSet with ")?;
    let (_, bytes) = sizes.split_once('(').and_then(|it| it.1.split_once('('))?;
    bytes.split_once(' ')?.0.parse().ok()
}

#[test]
fn lines_of_logs_come_back_equal_over_kafka() {
    all_come_back(6_000, false);
}

#[test]
#[ignore = "needs kcat, and minutes: cargo test --release -p baler-cli --test it json_logs -- --ignored --nocapture"]
fn a_million_lines_come_back_equal_and_cost_less_than_by_kcat() {
    let (ours, kcats) = all_come_back(1_000_000, true);
    println!("a million lines: {ours:?}, by kcat -P -z zstd: {kcats:?}");
    assert!(ours.bytes < kcats.bytes, "{ours:?} {kcats:?}");
}
