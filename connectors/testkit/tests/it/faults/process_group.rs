//! The processes and folders that are left when their owner is killed.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use baler_connector_testkit::faults::{ProcessGroupGuard, RabbitMqNode};

/// The variable that makes a test of this file the process that is killed. Its value is a folder.
const VICTIM: &str = "BALER_LEASH_VICTIM";

/// Runs a test of this file in its own process until it reports that it is ready, and kills it.
/// Returns the text of its report.
fn kill_when_ready(test: &str, folder: &Path) -> String {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(VICTIM, folder)
        .env("TMPDIR", folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let said = lines
        .map_while(Result::ok)
        .find_map(|line| Some(line.split_once("ready: ")?.1.to_owned()));
    victim.kill().unwrap();
    victim.wait().unwrap();
    said.expect("the process ended before it was ready")
}

/// Reports that everything is set up, so that the kill can come.
fn say_ready(said: &str) {
    println!("\nready: {said}");
    std::io::stdout().flush().unwrap();
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let by = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < by, "{what}");
        thread::park_timeout(Duration::from_millis(5));
    }
}

fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    // A zombie whose parent has ended stays until a process reaps it, which may never happen in a
    // container.
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn processes_and_folders_end_with_an_owner_that_is_killed() {
    if let Some(folder) = std::env::var_os(VICTIM) {
        let kept = Path::new(&folder).join("kept");
        fs::create_dir_all(&kept).unwrap();
        let guard = ProcessGroupGuard::new(Some(&kept)).unwrap();
        let mut sleeper = Command::new("sleep")
            .arg("1000")
            .process_group(0)
            .spawn()
            .unwrap();
        guard.hold(sleeper.id()).unwrap();
        say_ready(&sleeper.id().to_string());
        sleeper.wait().unwrap();
        return;
    }
    let folder = fresh_folder("guard");
    let sleeper = kill_when_ready(
        "faults::process_group::processes_and_folders_end_with_an_owner_that_is_killed",
        &folder,
    );
    wait_until("the process is left", || !runs(&sleeper));
    wait_until("the folder is left", || !folder.join("kept").exists());
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_was_let_go_of_stays() {
    let folder = fresh_folder("free");
    let mut sleeper = Command::new("sleep")
        .arg("1000")
        .process_group(0)
        .spawn()
        .unwrap();
    let guard = ProcessGroupGuard::new(Some(&folder)).unwrap();
    guard.hold(sleeper.id()).unwrap();
    // The shell has ended when this returns, so nothing can follow.
    drop(guard);
    assert!(folder.exists());
    assert!(sleeper.try_wait().unwrap().is_none());
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn node_of_rabbitmq_ends_with_an_owner_that_is_killed() {
    if std::env::var_os(VICTIM).is_some() {
        let node = RabbitMqNode::start().unwrap();
        say_ready(&node.pid().unwrap());
        loop {
            thread::park();
        }
    }
    let folder = fresh_folder("node");
    let node = kill_when_ready(
        "faults::process_group::node_of_rabbitmq_ends_with_an_owner_that_is_killed",
        &folder,
    );
    wait_until("the node is left", || !runs(&node));
    wait_until("its port mapper is left", || processes_in(&folder) == 0);
    let left = || fs::read_dir(&folder).unwrap().count();
    wait_until("its folder is left", || left() == 0);
    fs::remove_dir_all(folder).unwrap();
}

/// How many processes were started with this folder for temporary files.
fn processes_in(folder: &Path) -> usize {
    let setting = format!("TMPDIR={}", folder.display());
    let processes = fs::read_dir("/proc").unwrap();
    processes
        .filter_map(|process| fs::read(process.ok()?.path().join("environ")).ok())
        .filter(|settings| String::from_utf8_lossy(settings).contains(&setting))
        .count()
}

fn fresh_folder(name: &str) -> std::path::PathBuf {
    let name = format!("baler-{name}-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}
