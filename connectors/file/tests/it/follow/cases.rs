//! Single things that are done to files.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use baler_connector_file::follow::{Event, Follower, Pattern};

use super::support::{all, append, compress, lines, open, packed, settings, take};

struct Log {
    folder: tempfile::TempDir,
}

impl Log {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn open(&self, name: &str, follow: bool) -> Follower {
        open(
            &self.path(name),
            settings(follow, Some(&self.path("position"))),
        )
    }
}

fn lost(follower: &mut Follower) -> Vec<String> {
    let lost = follower
        .events()
        .filter(|it| matches!(it, Event::Lost { .. }));
    lost.map(|it| it.to_string()).collect()
}

#[test]
fn a_file_made_anew_with_the_same_number_is_read_from_its_beginning() {
    let log = Log::new();
    append(&log.path("app.log"), "1\n2\n");
    assert_eq!(take(&mut log.open("app.log", true)), ["1", "2"]);
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    let before = inode(&log.path("app.log"));
    fs::write(log.path("app.log"), "3\n4\n5\n").unwrap();
    assert_eq!(inode(&log.path("app.log")), before);
    let mut follower = log.open("app.log", true);
    let lost = lost(&mut follower);
    assert_eq!(take(&mut follower), ["3", "4", "5"]);
    assert!(
        lost.iter().any(|it| it.contains("after byte 4 is lost")),
        "{lost:?}"
    );
}

#[test]
fn half_a_line_stays_for_the_next_run() {
    let log = Log::new();
    append(&log.path("app.log"), "1\n2");
    assert_eq!(take(&mut log.open("app.log", false)), ["1"]);
    append(&log.path("app.log"), "2\n3\n");
    assert_eq!(take(&mut log.open("app.log", false)), ["22", "3"]);
    append(&log.path("app.log"), "4");
    let mut once = open(&log.path("app.log"), settings(false, None));
    assert_eq!(
        take(&mut once),
        ["1", "22", "3", "4"],
        "nothing comes later"
    );
}

#[test]
fn the_position_is_no_generation() {
    let log = Log::new();
    let (path, position) = (log.path("app.log"), log.path("app.log.1"));
    append(&path, "1\n");
    for (line, names) in [("1", ["2"].as_slice()), ("2", &["3"])] {
        let mut follower = open(&path, settings(true, Some(&position)));
        assert_eq!(take(&mut follower), [line]);
        append(&path, &format!("{}\n", names[0]));
    }
    append(&log.path("app.log.audit"), "no\n");
    fs::rename(&path, log.path("app.log-20260101")).unwrap();
    append(&path, "4\n");
    let mut follower = open(&path, settings(true, Some(&position)));
    assert_eq!(take(&mut follower), ["3", "4"]);
}

#[test]
fn a_link_is_rotated_in_the_folder_of_its_target() {
    let log = Log::new();
    fs::create_dir(log.path("pods")).unwrap();
    symlink("pods/0.log", log.path("c.log")).unwrap();
    append(&log.path("pods/0.log"), "1\n");
    assert_eq!(take(&mut log.open("c.log", true)), ["1"]);
    append(&log.path("pods/0.log"), "2\n");
    fs::rename(
        log.path("pods/0.log"),
        log.path("pods/0.log.20261126-120000"),
    )
    .unwrap();
    append(&log.path("pods/0.log"), "3\n");
    assert_eq!(take(&mut log.open("c.log", true)), ["2", "3"]);
    // It leads to another file now.
    append(&log.path("pods/0.log"), "4\n");
    append(&log.path("pods/1.log"), "5\n");
    fs::remove_file(log.path("c.log")).unwrap();
    symlink("pods/1.log", log.path("c.log")).unwrap();
    assert_eq!(take(&mut log.open("c.log", true)), ["4", "5"]);
}

#[test]
fn folders_and_wildcards_find_new_files_and_read_each_once() {
    for (pattern, skipped) in [
        ("logs", "x"),
        ("l*s/*.jsonl*", "x"),
        ("logs/", "x"),
        ("logs/a*.jsonl", "b"),
    ] {
        let log = Log::new();
        fs::create_dir(log.path("logs")).unwrap();
        append(&log.path("logs/a.jsonl"), "a1\n");
        append(&log.path("logs/a.jsonl.1"), "a0\n");
        fs::write(log.path("logs/a-20260101.jsonl"), "a00\n").unwrap();
        append(&log.path("logs/.hidden.jsonl"), "no\n");
        let position = log.path("logs/position.jsonl");
        let mut follower = Follower::open(
            Pattern::of(&log.path(pattern)),
            settings(true, Some(&position)),
        )
        .unwrap();
        let mut all = take(&mut follower);
        append(&log.path("logs/b.jsonl"), "b1\n");
        append(&log.path("logs/a.jsonl"), "a2\n");
        all.extend(take(&mut follower));
        fs::rename(log.path("logs/a.jsonl"), log.path("logs/a.jsonl.2")).unwrap();
        append(&log.path("logs/a.jsonl"), "a3\n");
        drop(follower);
        let mut follower = Follower::open(
            Pattern::of(&log.path(pattern)),
            settings(true, Some(&position)),
        )
        .unwrap();
        all.extend(take(&mut follower));
        all.sort();
        let mut expected = vec!["a0", "a00", "a1", "a2", "a3", "b1"];
        expected.retain(|line| !line.starts_with(skipped));
        if skipped == "b" {
            // No name of the pattern: it was rotated before.
            expected.retain(|line| *line != "a0");
        }
        assert_eq!(all, expected, "{pattern}");
    }
}

#[test]
fn compressed_files_are_read_without_their_compression() {
    for (name, is_gzip) in [("app.log.gz", true), ("app.log.zst", false)] {
        let log = Log::new();
        let (first, second) = (packed(b"1\n2\n", is_gzip), packed(b"3\n4", is_gzip));
        fs::write(log.path(name), [first, second].concat()).unwrap();
        let mut follower = log.open(name, false);
        assert_eq!(take(&mut follower), ["1", "2", "3", "4"], "{name}");
        drop(follower);
        assert!(take(&mut log.open(name, false)).is_empty(), "{name}");
    }
    let log = Log::new();
    let whole = packed("1\n".repeat(5_000).as_bytes(), true);
    fs::write(log.path("app.log.gz"), &whole[..whole.len() - 4]).unwrap();
    let mut follower = log.open("app.log.gz", false);
    let (_, events) = all(&mut follower);
    let events: Vec<_> = events.iter().map(ToString::to_string).collect();
    assert!(
        events
            .iter()
            .any(|it| it.contains("cannot be decompressed")),
        "{events:?}"
    );
}

#[test]
fn a_generation_that_was_compressed_before_it_was_read_is_read() {
    let log = Log::new();
    append(&log.path("app.log"), "1\n");
    assert_eq!(take(&mut log.open("app.log", true)), ["1"]);
    append(&log.path("app.log"), "2\n");
    fs::rename(log.path("app.log"), log.path("app.log.1")).unwrap();
    compress(&log.path("app.log.1"), &log.path("app.log.1.gz"));
    fs::rename(log.path("app.log.1.gz"), log.path("app.log.2.gz")).unwrap();
    append(&log.path("app.log.1"), "3\n");
    append(&log.path("app.log"), "4\n");
    assert_eq!(take(&mut log.open("app.log", true)), ["2", "3", "4"]);
}

#[test]
fn what_is_missing_is_waited_for_and_told_once() {
    let log = Log::new();
    let path = log.path("later/app.log");
    let missing = Follower::open(Pattern::of(&path), settings(false, None)).unwrap_err();
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
    let mut follower = open(&path, settings(true, None));
    let (lines, events) = all(&mut follower);
    assert!(lines.is_empty());
    assert!(matches!(&*events, [Event::Blocked { .. }]), "{events:?}");
    assert!(follower.waits_for().is_some());
    fs::create_dir(log.path("later")).unwrap();
    append(&path, "1\n");
    assert_eq!(take(&mut follower), ["1"]);
    assert_eq!(follower.waits_for(), None);
}

#[test]
fn a_line_that_comes_after_the_rotation_is_read() {
    let log = Log::new();
    append(&log.path("app.log"), "1\n");
    let mut follower = log.open("app.log", true);
    assert_eq!(take(&mut follower), ["1"]);
    fs::rename(log.path("app.log"), log.path("app.log.1")).unwrap();
    append(&log.path("app.log"), "3\n");
    assert_eq!(take(&mut follower), ["3"]);
    append(&log.path("app.log.1"), "2\n");
    assert_eq!(take(&mut follower), ["2"]);
}

#[test]
fn the_writer_of_a_rotated_file_has_time_to_end_it() {
    let log = Log::new();
    append(&log.path("app.log"), "1\n2");
    let mut settings = settings(true, None);
    settings.rotation_delay = Duration::from_secs(3_600);
    let mut follower = open(&log.path("app.log"), settings);
    assert_eq!(take(&mut follower), ["1"]);
    fs::rename(log.path("app.log"), log.path("app.log.1")).unwrap();
    append(&log.path("app.log"), "4\n");
    assert!(take(&mut follower).is_empty());
    assert!(follower.waits_for().is_some());
    append(&log.path("app.log.1"), "2\n3\n");
    assert_eq!(take(&mut follower), ["22", "3"]);
    // Two rotations later no writer has it open; the next file may have one.
    fs::rename(log.path("app.log"), log.path("app.log.0")).unwrap();
    append(&log.path("app.log"), "5\n");
    assert_eq!(take(&mut follower), ["4"]);
}

#[test]
fn a_position_of_the_old_form_is_continued() {
    let log = Log::new();
    append(&log.path("app.log.3"), "0\n");
    append(&log.path("app.log.2"), "1\n2\n");
    let metadata = fs::metadata(log.path("app.log.2")).unwrap();
    let (device, inode) = (metadata.dev(), metadata.ino());
    let position = format!("{{\"device\":{device},\"inode\":{inode},\"offset\":2}}");
    fs::write(log.path("position"), position).unwrap();
    let later = metadata.modified().unwrap() + Duration::from_secs(1);
    append(&log.path("app.log.1"), "3\n");
    fs::File::options()
        .write(true)
        .open(log.path("app.log.1"))
        .unwrap()
        .set_modified(later)
        .unwrap();
    append(&log.path("app.log"), "4\n");
    assert_eq!(take(&mut log.open("app.log", true)), ["2", "3", "4"]);
    append(&log.path("app.log"), "5\n");
    assert_eq!(take(&mut log.open("app.log", true)), ["5"]);
}

#[test]
fn what_is_there_can_be_passed_over() {
    let log = Log::new();
    append(&log.path("app.log"), "1\n2\n3");
    let mut settings = settings(true, None);
    settings.from_now = true;
    let mut follower = open(&log.path("app.log"), settings);
    append(&log.path("app.log"), "3\n4\n");
    append(&log.path("app.log.1"), "no\n");
    let taken = lines(&mut follower, 2);
    let taken: Vec<_> = taken.into_iter().map(|it| it.text).collect();
    assert_eq!(taken, ["33", "4"]);
}
