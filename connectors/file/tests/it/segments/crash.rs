//! Processes that are killed, and disks that are full.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use baler_connector_file::{FileWriter, FileWriterConfig, SyncPolicy};
use baler_connector_testkit::{ChunkSource, Pump, within_patience};

use crate::segments::support::{finish, labels, read_all, soon, write};

/// Where the child writes, and how.
const FOLDER: &str = "BALER_FILE_TEST_FOLDER";
const SYNC: &str = "BALER_FILE_TEST_SYNC";
const CHUNKS: &str = "BALER_FILE_TEST_CHUNKS";

/// The writing process of the other tests here. It notes how many chunks were confirmed.
#[test]
#[ignore = "needs to be started by the tests that kill it"]
fn child_that_writes() {
    let Ok(folder) = std::env::var(FOLDER).map(PathBuf::from) else {
        return;
    };
    let mut config = FileWriterConfig::new(folder.join("chunks"));
    if std::env::var(SYNC).is_ok_and(|sync| sync == "none") {
        config.sync = SyncPolicy::None;
    }
    let chunks: usize = std::env::var(CHUNKS).unwrap().parse().unwrap();
    let mut note = OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("confirmed"))
        .unwrap();
    let mut pump = Pump::open(Box::new(FileWriter::new(config)));
    let mut source = ChunkSource::new(1);
    for at in 0..chunks {
        pump.push([source.next(0, 100 + at * 37 % 5_000)]);
        pump.step();
        note.write_all(format!("{} {}\n", pump.confirmed(), pump.breaks()).as_bytes())
            .unwrap();
    }
    finish(&mut pump);
    note.write_all(format!("{} {}\n", pump.confirmed(), pump.breaks()).as_bytes())
        .unwrap();
    assert!(pump.close(soon()).1.error.is_none());
}

/// Starts the child by a shell that first runs `prepare`.
fn child(folder: &Path, sync: &str, chunks: usize, prepare: &str) -> Child {
    Command::new("sh")
        .arg("-c")
        .arg(format!(
            "{prepare} exec \"$0\" --exact segments::crash::child_that_writes --ignored"
        ))
        .arg(std::env::current_exe().unwrap())
        .env(FOLDER, folder)
        .env(SYNC, sync)
        .env(CHUNKS, chunks.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Returns the child's last whole note: chunks confirmed, and how often the writer broke.
fn noted(folder: &Path) -> (u64, u64) {
    let notes = fs::read_to_string(folder.join("confirmed")).unwrap_or_default();
    let whole = notes.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let last = whole.lines().last().unwrap_or("0 0");
    let (confirmed, breaks) = last.split_once(' ').unwrap();
    (confirmed.parse().unwrap(), breaks.parse().unwrap())
}

#[test]
fn nothing_confirmed_is_missing_after_the_writer_was_killed() {
    for sync in ["none", "chunk"] {
        let folder = tempfile::tempdir().unwrap();
        let mut total = 0;
        for _ in 0..3 {
            fs::write(folder.path().join("confirmed"), "").unwrap();
            let mut child = child(folder.path(), sync, usize::MAX, "");
            within_patience("some chunks are confirmed", || {
                (noted(folder.path()).0 > 200).then_some(())
            });
            child.kill().unwrap();
            child.wait().unwrap();
            // Each life numbers its chunks from 0, and each is read in order, whatever was torn.
            let (confirmed, _) = noted(folder.path());
            let before = read_all(&folder.path().join("chunks")).0.len();
            assert!(
                before as u64 >= total + confirmed,
                "{sync}: {confirmed} were confirmed"
            );
            write(&FileWriterConfig::new(folder.path().join("chunks")), 1).close(soon());
            let labels = labels(&folder.path().join("chunks"));
            assert_eq!(labels.len(), before + 1);
            let life = &labels[usize::try_from(total).unwrap()..before];
            assert!(
                life.iter()
                    .map(|label| label.sequence)
                    .eq(0..life.len() as u64)
            );
            total = labels.len() as u64;
        }
    }
}

#[test]
fn write_that_the_system_refuses_is_cut_off_and_repeated() {
    for sync in ["none", "chunk"] {
        let folder = tempfile::tempdir().unwrap();
        // No file may exceed 64 blocks (of 512 or 1,024 bytes). The write that exceeds them
        // succeeds in part, as on a full disk.
        let mut child = child(folder.path(), sync, 300, "trap '' XFSZ; ulimit -f 64;");
        assert!(
            child.wait().unwrap().success(),
            "{:?}",
            noted(folder.path())
        );
        let (confirmed, breaks) = noted(folder.path());
        assert_eq!(confirmed, 300);
        assert!(breaks >= 5, "the limit was not reached");
        let mut sequences: Vec<u64> = labels(&folder.path().join("chunks"))
            .into_iter()
            .map(|label| label.sequence)
            .collect();
        sequences.dedup();
        sequences.sort_unstable();
        sequences.dedup();
        assert!(sequences.into_iter().eq(0..300));
        assert!(crate::segments::support::set_aside(&folder.path().join("chunks")).is_empty());
    }
}
