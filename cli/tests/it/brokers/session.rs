//! The session of docs/adaptive.md: programs in Rust, C and Python, one relay, RabbitMQ.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use baler_connector_testkit::faults::RabbitMqNode;

use crate::relay::RelayProcess;
use crate::support::{Background, baler, json_lines, output, wait_for, workspace};

/// What the operator switches, and what goes on, in each of the three programs.
const SHOP: [&str; 3] = ["com.shop.Till.", "com.shop.Cart.", "com.shop.Shelf."];
const HEALTH: [&str; 3] = [".Monitor.", ".CartMonitor.", ".ShelfMonitor."];

/// The time in which a switch reaches a program.
const PROMPT: Duration = Duration::from_secs(1);

#[test]
fn a_package_is_switched_in_three_languages_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let session = |name: &str| workspace("clients/session").join(name);
    let irl = session("shop.irl").to_str().unwrap().to_owned();
    for language in ["c", "python"] {
        let args = ["irl", "generate", "--language", language, "--output"];
        output(&[&args[..], &[&path(language), &irl]].concat());
    }
    let client = workspace("clients/c");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"])
        .args([&client, Path::new("-I"), Path::new(&path("c"))])
        .args([session("shop.c"), client.join("baler.c")])
        .args(["-o", &path("shop")]);
    assert!(gcc.status().expect("gcc runs").success());

    let node = RabbitMqNode::start().unwrap();
    let queue = node.uri("?queue=visits");
    fs::write(path("token"), "secret").unwrap();
    let (token, metrics, records) = (path("token"), path("metrics"), path("records"));
    let flags = [
        &["--schemas", &irl, "--probes-token", &token][..],
        &["--metrics", "127.0.0.1:0", "--metrics-port-file", &metrics],
    ];
    let from = "kieker+tcp://127.0.0.1:0?max_age=20ms";
    let relay = RelayProcess::start(from, &queue, folder.path(), &flags.concat());
    let via = wait_for("the address", || fs::read_to_string(&metrics).ok());
    let probes = |args: &[&str]| {
        let via = ["--via", via.trim(), "--token-file", &token];
        let run = baler(&[&["probes"], args, &via].concat()).success();
        String::from_utf8(run.get_output().stdout.clone()).unwrap()
    };
    let args = ["receive", "--from", &queue, "--schemas", &irl];
    let receiver = Background::start(&[&args[..], &["--format", "json", "-o", &records]].concat());

    let (input, held) = std::io::pipe().unwrap();
    let uri = format!("kieker+{}", relay.uri);
    let mut rust =
        Command::new(Path::new(env!("CARGO_BIN_EXE_baler")).with_file_name("examples/switched"));
    rust.arg(format!("{uri}?adaptive=true"));
    let mut c = Command::new(path("shop"));
    c.arg(&uri);
    let mut python = Command::new("python3");
    let modules = std::env::join_paths([workspace("clients/python"), path("python").into()]);
    python
        .arg(session("shop.py"))
        .arg(&uri)
        .env("PYTHONPATH", modules.unwrap())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let programs = [rust, c, python]
        .map(|mut command| Background::spawn(command.stdin(input.try_clone().unwrap())));

    let came = || calls(&fs::read_to_string(&records).unwrap_or_default());
    let came_of_all = |names: [&str; 3], from: u128| {
        let came = came();
        let is_there = |name: &&str| came.iter().any(|it| it.0.contains(*name) && it.1 > from);
        names.iter().all(is_there).then_some(())
    };
    wait_for("the first records", || came_of_all(SHOP, 0));
    let listed = probes(&["list"]);
    assert!(
        SHOP.iter().chain(&HEALTH).all(|it| listed.contains(it)),
        "{listed}"
    );

    probes(&["deactivate", "com.shop..*"]);
    let silent = now() + PROMPT.as_nanos();
    wait_for("the rest", || {
        came_of_all(HEALTH, silent + PROMPT.as_nanos())
    });
    let late: Vec<_> = came().into_iter().filter(|it| it.1 > silent).collect();
    assert!(
        late.iter().all(|it| it.0.contains("com.health.")),
        "{late:?}"
    );

    let begun = now();
    probes(&["activate", "com.shop..*"]);
    let loud = now() + PROMPT.as_nanos();
    wait_for("the records of the shop", || came_of_all(SHOP, begun));
    for name in SHOP {
        let came = came();
        let first = came.iter().find(|it| it.0.contains(name) && it.1 > begun);
        assert!(first.is_some_and(|it| it.1 < loud), "{name}");
    }

    drop((held, input));
    for program in programs {
        let said = program.succeed();
        assert!(!said.is_empty());
    }
    let (summary, code) = relay.end();
    assert_eq!(code, 0, "{summary}");
    receiver.signal("TERM");
    assert!(receiver.end().0.success());
}

/// The operations in JSON lines, and when they were called. The last line may be incomplete.
fn calls(text: &str) -> Vec<(String, u128)> {
    let complete = text.rsplit_once('\n').map_or("", |it| it.0);
    let records = json_lines(complete).into_iter();
    let calls = records.filter_map(|record| {
        let field = |names: [&str; 2]| {
            names
                .iter()
                .find_map(|it| record["fields"].get(it))
                .cloned()
        };
        let operation = field(["operation", "operationSignature"])?;
        let at = field(["timestamp", "tin"])?.as_u64()?;
        Some((operation.as_str()?.to_owned(), at.into()))
    });
    calls.collect()
}

fn now() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_nanos()
}
