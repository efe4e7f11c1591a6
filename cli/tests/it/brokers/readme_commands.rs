//! Every shell command in every README, in `docs` and in `docs/commands` works as it stands there.
//!
//! README.md, docs/*.md, docs/commands/*.md -> their blocks of shell -> bash, each in a folder of its own that looks like a clone
//!
//! The blocks run in a network of their own, so that `localhost` has only the private brokers of
//! other tests: RabbitMQ at port 5672, Kafka's mock at 9092. Their PATH has the built `baler`, and
//! a `cargo` that runs the built programs instead of building them for release. A block below a
//! comment of [`NOT_RUN`] and a reason is listed and not run.

use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use baler_connector_kafka::EmbeddedCluster;
use baler_connector_testkit::faults::RabbitMqNode;

use crate::support::{command, wait_for, workspace};

/// The beginning of the line above a block that is not run; the reason follows.
const NOT_RUN: &str = "<!-- Not run by the tests: ";

/// How long a block may take, unoptimised and beside other tests.
const LIMIT: Duration = Duration::from_secs(240);

/// Set in the process that runs the blocks.
const INSIDE: &str = "README_COMMANDS";

/// Stands for `cargo run`: the program, binary or example is the one beside the test.
const CARGO: &str = r#"#!/usr/bin/env bash
set -euo pipefail
[[ $1 == run ]] || { echo "the test's cargo knows 'cargo run' alone, not '$1'" >&2; exit 2; }
shift
program=baler
while (($#)); do
    case $1 in
    --release) shift ;;
    -p | --profile) shift 2 ;;
    --bin) program=$2 && shift 2 ;;
    --example) program=examples/$2 && shift 2 ;;
    --) shift && break ;;
    *) echo "the test's cargo does not know '$1'" >&2; exit 2 ;;
    esac
done
exec "$BUILT/$program" "$@"
"#;

/// A block of shell in a README.
#[derive(Debug)]
struct Block {
    /// File and line.
    place: String,
    script: String,
    /// The reason why it is not run.
    not_run: Option<String>,
}

#[test]
fn every_command_in_a_readme_works_as_printed() {
    if std::env::var_os(INSIDE).is_none() {
        let name = "brokers::readme_commands::every_command_in_a_readme_works_as_printed";
        let status = Command::new("unshare")
            .args(["--map-root-user", "--net"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(INSIDE, "1")
            .status();
        let status = status.expect("unshare (util-linux) runs");
        // It may also have failed since this user may not make namespaces; unshare says so above.
        assert!(status.success(), "{status}");
        return;
    }
    let up = Command::new("ip")
        .args(["link", "set", "lo", "up"])
        .status();
    assert!(up.expect("ip (iproute2) runs").success());
    let rabbitmq = RabbitMqNode::start().expect("a private RabbitMQ starts");
    forward(5672, rabbitmq.address());
    let kafka = EmbeddedCluster::start("records", 4).expect("Kafka's mock starts");
    forward(9092, kafka.bootstrap_servers().parse().unwrap());

    let (skipped, run): (Vec<_>, Vec<_>) =
        blocks().into_iter().partition(|it| it.not_run.is_some());
    let failures: Vec<_> = run
        .iter()
        .filter_map(|block| run_block(block).err())
        .collect();
    for block in &skipped {
        let reason = block.not_run.as_ref().unwrap();
        println!("not run: {}: {reason}", block.place);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    // Without this, a reader that finds no block any more would pass.
    assert!(run.len() >= 8, "{} run", run.len());
}

#[test]
fn a_command_that_fails_is_found_and_nothing_stays_behind() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let script = format!(
        "sleep 1000 & echo $! >{}\nbaler recieve | cat\n",
        pid.display()
    );
    let text = format!("text\n```text\nno\n```\n\n```sh\n{script}```\n");
    let blocks = blocks_of("X.md", &text);
    let [block] = blocks.as_slice() else {
        panic!("{blocks:?}")
    };
    assert_eq!((&*block.place, &*block.script), ("X.md:6", &*script));
    let failure = run_block(block).unwrap_err();
    assert!(failure.contains("X.md:6: exit status: 2"), "{failure}");
    assert!(failure.contains("unrecognized subcommand"), "{failure}");
    let stat = format!("/proc/{}/stat", fs::read_to_string(pid).unwrap().trim());
    wait_for("the end of what it left", || {
        let stat = fs::read_to_string(&stat).unwrap_or_default();
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    });
}

/// Returns the blocks of all READMEs, in the order of their paths.
fn blocks() -> Vec<Block> {
    let root = fs::canonicalize(workspace("")).unwrap();
    let mut readmes = Vec::new();
    find_readmes(&root, &mut readmes);
    readmes.sort();
    let all = readmes.iter().flat_map(|path| {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        blocks_of(&name, &fs::read_to_string(path).unwrap())
    });
    all.collect()
}

fn find_readmes(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_page = ["docs", "docs/commands"]
            .iter()
            .any(|it| folder.ends_with(it));
        let is_page = is_page && name.ends_with(".md");
        if name == "README.md" || is_page {
            found.push(path);
        } else if path.is_dir() && !path.is_symlink() && name != "target" && !name.starts_with('.')
        {
            find_readmes(&path, found);
        }
    }
}

fn blocks_of(name: &str, text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let (mut fence, mut above) = (None, "");
    for (number, line) in (1..).zip(text.lines()) {
        let above = std::mem::replace(&mut above, line);
        let Some(language) = line.trim_start().strip_prefix("```") else {
            if let Some(Some(Block { script, .. })) = &mut fence {
                script.push_str(line);
                script.push('\n');
            }
            continue;
        };
        match fence.take() {
            Some(block) => blocks.extend(block),
            None => {
                let is_shell = ["sh", "bash", "shell", "console", "zsh"].contains(&language.trim());
                fence = Some(is_shell.then(|| Block {
                    place: format!("{name}:{number}"),
                    script: String::new(),
                    not_run: above.strip_prefix(NOT_RUN).map(ToOwned::to_owned),
                }));
            }
        }
    }
    blocks
}

/// Runs a block as a new user would: in a clone, with the program on the PATH.
fn run_block(block: &Block) -> Result<(), String> {
    let scratch = tempfile::tempdir().unwrap();
    let (clone, bin) = (scratch.path().join("clone"), scratch.path().join("bin"));
    fs::create_dir(&clone).unwrap();
    fs::create_dir(&bin).unwrap();
    for entry in fs::read_dir(workspace("")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != "target" && !name.starts_with('.') {
            let original = fs::canonicalize(entry.path()).unwrap();
            symlink(original, clone.join(name)).unwrap();
        }
    }
    let baler = Path::new(env!("CARGO_BIN_EXE_baler"));
    symlink(baler, bin.join("baler")).unwrap();
    fs::write(bin.join("cargo"), CARGO).unwrap();
    fs::set_permissions(bin.join("cargo"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = scratch.path().join("output");
    let log = File::create(&output).unwrap();
    // The environment of a run of the program, for bash.
    let mut bash = Command::new("bash");
    for (name, value) in command().get_envs() {
        match value {
            Some(value) => bash.env(name, value),
            None => bash.env_remove(name),
        };
    }
    let mut bash = bash
        .args(["-eu", "-o", "pipefail", "-c", &block.script])
        .current_dir(&clone)
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("BUILT", baler.parent().unwrap())
        .env_remove(INSIDE)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .process_group(0)
        .spawn()
        .unwrap();
    let started = std::time::Instant::now();
    let status = loop {
        match bash.try_wait().unwrap() {
            Some(status) => break status.to_string(),
            None if started.elapsed() > LIMIT => break format!("no end after {LIMIT:?}"),
            None => thread::park_timeout(Duration::from_millis(20)),
        }
    };
    // Processes that it left in the background end with it.
    let group = format!("-{}", bash.id());
    let kill = Command::new("kill")
        .args(["-s", "KILL", "--", &group])
        .stderr(Stdio::null())
        .status();
    kill.unwrap();
    bash.wait().unwrap();
    println!("{}: {status}, {:.1?}", block.place, started.elapsed());
    if status == "exit status: 0" {
        return Ok(());
    }
    let told = fs::read_to_string(&output).unwrap_or_default();
    Err(format!("{}: {status}\n{}{told}", block.place, block.script))
}

/// Passes connections to a port of the loopback on to another address.
fn forward(port: u16, target: SocketAddr) {
    for host in [
        IpAddr::from(Ipv4Addr::LOCALHOST),
        Ipv6Addr::LOCALHOST.into(),
    ] {
        let listener = TcpListener::bind((host, port)).unwrap();
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(target)) else {
                    continue;
                };
                for (mut from, mut to) in [
                    (client.try_clone().unwrap(), server.try_clone().unwrap()),
                    (server, client),
                ] {
                    thread::spawn(move || {
                        // Either end may break the connection; the other one is to notice.
                        io::copy(&mut from, &mut to).ok();
                        to.shutdown(std::net::Shutdown::Both).ok();
                    });
                }
            }
        });
    }
}
