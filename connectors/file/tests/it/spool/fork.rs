//! A process forks and is killed: its child keeps none of its locks.

#![expect(
    unsafe_code,
    reason = "the standard library cannot fork a process without starting a program"
)]

use std::env;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use baler_common::transport::ChunkWriter as _;
use baler_connector_file::{FileReader, FileReaderConfig, FileWriter, FileWriterConfig};
use baler_connector_testkit::MemoryMedium;

use super::support::{Sender, config, soon};

/// Where the forking process keeps its files.
const FOLDER: &str = "BALER_SPOOL_TEST_FOLDER";
/// The text that the child of the fork writes when it runs.
const READY: &[u8] = b"the child of the fork runs\n";

/// A file writer, a named consumer of its folder, and a spool that has chunks on disk.
fn open_all(folder: &Path) -> (Box<FileWriter>, FileReader, Sender) {
    let files = folder.join("files");
    let mut writer = Box::new(FileWriter::new(FileWriterConfig::new(&files)));
    writer.reopen(soon()).unwrap();
    let mut reader = FileReaderConfig::new(&files);
    reader.consumer = Some("tail".parse().unwrap());
    let reader = FileReader::open(reader).unwrap();
    let medium = MemoryMedium::default();
    medium.set_unreachable(true);
    let mut sender = Sender::open(&medium, config(folder));
    sender.send(1);
    (writer, reader, sender)
}

/// The process that the test below kills. Its child ends with the standard input of both.
#[test]
#[ignore = "needs to be started by the test that kills it"]
fn process_that_forks() {
    unsafe extern "C" {
        safe fn fork() -> i32;
        fn read(file: i32, bytes: *mut u8, length: usize) -> isize;
        fn write(file: i32, bytes: *const u8, length: usize) -> isize;
        safe fn _exit(status: i32) -> !;
    }
    let Ok(folder) = env::var(FOLDER).map(PathBuf::from) else {
        return;
    };
    let _open = open_all(&folder);
    assert!(fork() >= 0);
    // Parent and child wait here; only the child is left after a while.
    let mut byte = 0;
    // SAFETY: both buffers have the given lengths and live until the calls return.
    unsafe {
        write(2, READY.as_ptr(), READY.len());
        read(0, &raw mut byte, 1);
    }
    _exit(0);
}

#[test]
fn child_of_a_fork_keeps_no_lock_of_its_dead_parent() {
    let folder = tempfile::tempdir().unwrap();
    let mut parent = Command::new(env::current_exe().unwrap())
        .args(["--exact", "spool::fork::process_that_forks", "--ignored"])
        .env(FOLDER, folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(parent.stderr.take().unwrap()).lines();
    // Both processes of the fork write it.
    for _ in 0..2 {
        let line = lines.next().unwrap().unwrap();
        assert_eq!(line.as_bytes(), READY.trim_ascii_end());
    }
    // The child lives until this ends.
    let _stdin = parent.stdin.take();
    parent.kill().unwrap();
    parent.wait().unwrap();
    open_all(folder.path());
}
