//! A killed `baler verify` leaves nothing behind.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::support::{command, wait_for};

/// Returns the processes that were started with this temporary folder.
fn processes_in(folder: &Path) -> Vec<String> {
    let setting = format!("TMPDIR={}", folder.display());
    let processes = fs::read_dir("/proc").unwrap();
    let name = |process: fs::DirEntry| Some(process.file_name().to_str()?.to_owned());
    let of_folder = |pid: &String| {
        let settings = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&settings)
            .split('\0')
            .any(|it| it == setting)
    };
    processes
        .filter_map(|process| name(process.ok()?))
        .filter(of_folder)
        .collect()
}

/// Kills a run once it has as many processes as it needs and wrote to its folder, if it has one.
pub(crate) fn leaves_nothing(to: &str, flags: &[&str], processes: usize) {
    let folder = tempfile::tempdir().unwrap();
    let mut run = command();
    run.args(["verify", "--to", to, "--records", "1M"])
        .args(flags)
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut run = run.spawn().unwrap();
    wait_for("all processes", || {
        (processes_in(folder.path()).len() >= processes).then_some(())
    });
    run.kill().unwrap();
    run.wait().unwrap();
    wait_for("the end of all processes", || {
        processes_in(folder.path()).is_empty().then_some(())
    });
    let left: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn relays_end_with_a_verify_that_is_killed() {
    // The command, two relays, two producers, two consumers, a shell for each relay.
    leaves_nothing("tcp:", &["--faults", "broker-restart"], 9);
}

#[test]
fn folders_end_with_a_verify_that_is_killed() {
    // The command, two producers, two consumers, a shell for each of two folders.
    leaves_nothing("file:", &["--spool"], 7);
}
