//! Disks that are full, forbidden, torn or damaged.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use baler_connector_file::spool::{SpoolConfig, SpoolRoute};
use baler_connector_testkit::{MemoryMedium, Tap};

use super::support::{Sender, assert_adds_up, config, receive};

/// The newest segment of a spool.
fn newest_segment(folder: &Path) -> PathBuf {
    let entries = fs::read_dir(folder.join("spool/chunks")).unwrap();
    let mut segments: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "seg"))
        .collect();
    segments.sort();
    segments.pop().unwrap()
}

/// Puts chunks into a spool, and ends while the medium is away.
fn spool(folder: &Path, chunks: usize) {
    let medium = MemoryMedium::default();
    medium.set_unreachable(true);
    let mut sender = Sender::open(&medium, config(folder));
    sender.send(chunks);
    sender.close();
}

/// Returns the chunks that a next life sends on.
fn replayed(folder: &Path) -> (Vec<u64>, baler_connector_file::spool::SpoolStatus) {
    let medium = MemoryMedium::default();
    let mut tap = Tap::new(Box::new(medium.reader()));
    let mut sender = Sender::of_producer(&medium, config(folder), 2);
    sender.wait_for_route(SpoolRoute::Direct);
    let status = sender.close();
    receive(&mut tap);
    assert_adds_up(&status);
    let sequences = tap.received().iter().map(|label| label.sequence);
    (sequences.collect(), status)
}

/// The chunk at the end is cut or overwritten at every byte. Only this chunk is lost, and the loss
/// is noticed.
#[test]
fn torn_write_costs_the_last_chunk_only_wherever_it_tore() {
    let origin = tempfile::tempdir().unwrap();
    spool(origin.path(), 3);
    let segment = newest_segment(origin.path());
    let whole = fs::read(&segment).unwrap();
    // The last frame: 76 bytes of header and a chunk of 66 bytes.
    let last = whole.len() - 76 - 66;
    for cut in last..whole.len() {
        for zeros in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let chunks = folder.path().join("spool/chunks");
            fs::create_dir_all(&chunks).unwrap();
            let mut torn = whole[..cut].to_vec();
            if zeros {
                // As after a loss of power: the length is there, the data is not.
                torn.resize(whole.len(), 0);
            }
            fs::write(chunks.join(segment.file_name().unwrap()), &torn).unwrap();
            let (sequences, status) = replayed(folder.path());
            // Zeros in place of zeros are no damage: such a frame is whole.
            let expected: &[u64] = if torn == whole { &[0, 1, 2] } else { &[0, 1] };
            assert_eq!(sequences, expected, "cut at {cut}, zeros: {zeros}");
            let is_damaged = torn != whole && torn.len() > last;
            assert_eq!(status.damaged_pieces, u64::from(is_damaged), "cut at {cut}");
        }
    }
}

/// Chunks that were reported as spooled and are gone are counted, once, whatever is left.
#[test]
fn chunks_that_are_gone_although_they_were_safe_are_lost() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm, u64); 4] = [
        ("nothing", |_| {}, 0),
        (
            "the end is cut between two chunks",
            |folder| {
                let segment = newest_segment(folder);
                let length = fs::metadata(&segment).unwrap().len();
                let file = OpenOptions::new().write(true).open(segment).unwrap();
                file.set_len(length - 8 * (76 + 66)).unwrap();
            },
            8,
        ),
        (
            "the segment is gone",
            |folder| fs::remove_file(newest_segment(folder)).unwrap(),
            20,
        ),
        (
            "the folder is gone",
            |folder| fs::remove_dir_all(folder.join("spool/chunks")).unwrap(),
            20,
        ),
    ];
    for (what, harm, lost) in harms {
        let folder = tempfile::tempdir().unwrap();
        spool(folder.path(), 20);
        harm(folder.path());
        let (sequences, status) = replayed(folder.path());
        assert_eq!(sequences, Vec::from_iter(0..20 - lost), "{what}");
        assert_eq!(
            (status.found_chunks, status.lost_chunks, status.lost_records),
            // A chunk has one record more than the one before.
            (20, lost, (21 - lost..=20).sum()),
            "{what}"
        );
        let (_, status) = replayed(folder.path());
        assert_eq!((status.found_chunks, status.lost_chunks), (0, 0), "{what}");
        // The folder goes on to promise.
        spool(folder.path(), 3);
        fs::remove_file(newest_segment(folder.path())).unwrap();
        assert_eq!(replayed(folder.path()).1.lost_chunks, 3, "{what}");
    }
}

#[test]
fn an_old_segment_that_is_gone_is_lost_and_a_later_one_is_sent_on() {
    let folder = tempfile::tempdir().unwrap();
    spool(folder.path(), 20);
    let oldest = newest_segment(folder.path());
    spool(folder.path(), 5);
    fs::remove_file(oldest).unwrap();
    let (sequences, status) = replayed(folder.path());
    assert_eq!(sequences, [0, 1, 2, 3, 4]);
    assert_eq!((status.found_chunks, status.lost_chunks), (25, 20));
}

#[test]
fn damage_in_the_middle_is_told_and_kept_and_the_rest_follows() {
    let folder = tempfile::tempdir().unwrap();
    spool(folder.path(), 10);
    let segment = newest_segment(folder.path());
    let mut bytes = fs::read(&segment).unwrap();
    // Somewhere in the second chunk.
    bytes[32 + 76 + 64 + 76 + 30] ^= 0xff;
    fs::write(&segment, bytes).unwrap();
    let (sequences, status) = replayed(folder.path());
    assert_eq!(sequences, [0, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(status.damaged_pieces, 1);
    assert_eq!((status.lost_chunks, status.lost_records), (1, 2));
    assert_eq!((status.stats.waiting_bytes, status.waiting_records), (0, 0));
    let refused = fs::read_dir(folder.path().join("spool/refused")).unwrap();
    assert_eq!(refused.count(), 2, "the bytes and what is wrong with them");
}

#[test]
fn full_spool_is_as_good_as_none_until_the_medium_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let medium = MemoryMedium::default();
    let mut tap = Tap::new(Box::new(medium.reader()));
    let mut config = config(folder.path());
    config.max_bytes = 10_000.try_into().unwrap();
    medium.set_unreachable(true);
    let mut sender = Sender::open(&medium, config);
    sender.pump.push(sender.source.take(200));
    sender.wait_for("the owner is told", |sender| sender.pump.breaks() > 2);
    let status = sender.status();
    assert!(status.stats.waiting_chunks > 20 && status.stats.waiting_chunks < 100);
    assert!(status.disk_failures > 0);
    assert!(status.disk_error.unwrap().to_string().contains("full"));
    medium.set_unreachable(false);
    sender.wait_for("all is told", |sender| sender.pump.is_done());
    sender.wait_for_route(SpoolRoute::Direct);
    receive(&mut tap);
    assert_eq!(tap.distinct(), 200);
    tap.assert_ordered();
    let status = sender.close();
    assert_adds_up(&status);
    assert!(status.disk_error.is_none(), "{status:?}");
}

#[test]
fn chunk_above_the_whole_spool_waits_for_the_medium() {
    let folder = tempfile::tempdir().unwrap();
    let medium = MemoryMedium::default();
    let mut tap = Tap::new(Box::new(medium.reader()));
    let mut config = config(folder.path());
    config.max_bytes = 4_000.try_into().unwrap();
    medium.set_unreachable(true);
    let mut sender = Sender::open(&medium, config);
    let chunks = [100, 5_000, 100].map(|bytes| sender.source.next(0, bytes));
    sender.pump.push(chunks);
    sender.wait_for("the owner is told", |sender| sender.pump.breaks() > 2);
    medium.set_unreachable(false);
    sender.wait_for("all is told", |sender| sender.pump.is_done());
    sender.wait_for_route(SpoolRoute::Direct);
    receive(&mut tap);
    assert_eq!(tap.distinct(), 3);
    tap.assert_ordered();
    sender.close();
}

#[test]
fn disk_that_comes_back_takes_what_waited() {
    let folder = tempfile::tempdir().unwrap();
    let medium = MemoryMedium::default();
    let config = config(folder.path());
    // A file is in the way of the folder.
    fs::write(&config.folder, "in the way").unwrap();
    let mut sender = Sender::open(&medium, config.clone());
    medium.set_unreachable(true);
    sender.pump.push(sender.source.take(100));
    sender.wait_for("the owner is told", |sender| sender.pump.breaks() > 2);
    assert_eq!(sender.status().stats.spooled_chunks, 0);
    fs::remove_file(&config.folder).unwrap();
    sender.wait_for("all is spooled", |sender| sender.pump.is_done());
    let status = sender.close();
    assert_eq!(status.stats.waiting_chunks, 100);
    assert!(status.disk_error.is_none(), "{status:?}");
}

const FOLDER: &str = "BALER_SPOOL_TEST_FOLDER";

/// The sending process of the tests below: spools 300 chunks, then lets the medium come back.
#[test]
#[ignore = "needs to be started by the tests that limit it"]
fn child_that_spools() {
    let Ok(folder) = std::env::var(FOLDER).map(PathBuf::from) else {
        return;
    };
    let medium = MemoryMedium::default();
    let mut tap = Tap::new(Box::new(medium.reader()));
    medium.set_unreachable(true);
    let mut sender = Sender::open(&medium, config(&folder));
    for at in 0..300 {
        let chunk = sender.source.next(0, 100 + at * 37 % 5_000);
        sender.pump.push([chunk]);
    }
    sender.wait_for("the disk fails, or all is spooled", |sender| {
        sender.status().disk_failures >= 3 || sender.pump.is_done()
    });
    medium.set_unreachable(false);
    sender.wait_for("all is told", |sender| sender.pump.is_done());
    sender.wait_for_route(SpoolRoute::Direct);
    receive(&mut tap);
    assert_eq!(tap.distinct(), 300);
    tap.assert_ordered();
    let status = sender.close();
    assert_adds_up(&status);
    let mut note = OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("note"))
        .unwrap();
    write!(note, "{}", status.disk_failures).unwrap();
}

/// Runs the child in a shell that first runs `prepare`. Returns how often the disk failed.
fn limited(folder: &Path, prepare: &str) -> u64 {
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!(
            "{prepare} exec \"$0\" --exact spool::disk::child_that_spools --ignored --nocapture"
        ))
        .arg(std::env::current_exe().unwrap())
        .env(FOLDER, folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let note = fs::read_to_string(folder.join("note")).unwrap();
    note.parse().unwrap()
}

#[test]
fn write_that_the_system_refuses_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // No file may exceed 32 blocks (of 512 or 1,024 bytes). The write that exceeds them succeeds in
    // part, as on a full disk.
    let failures = limited(folder.path(), "trap '' XFSZ; ulimit -f 32;");
    assert!(failures >= 3, "the limit was not reached");
}

/// Mounts a file system of 256 KiB; unmounted at the end.
struct TinyDisk(tempfile::TempDir);

impl TinyDisk {
    fn mount() -> Self {
        let disk = Self(tempfile::tempdir().unwrap());
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
            .arg(disk.0.path())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(
            mounted.success(),
            "needs a user that can mount a file system"
        );
        disk
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.0.path()).status();
        drop(unmounted);
    }
}

#[test]
fn full_disk_loses_nothing() {
    let disk = TinyDisk::mount();
    let failures = limited(disk.0.path(), "");
    assert!(failures >= 3, "the disk was not full");
}

/// The bound is kept, frames included.
#[test]
fn spool_never_takes_more_than_its_bound() {
    let folder = tempfile::tempdir().unwrap();
    let medium = MemoryMedium::default();
    medium.set_unreachable(true);
    let mut config: SpoolConfig = config(folder.path());
    config.max_bytes = 50_000.try_into().unwrap();
    let mut sender = Sender::open(&medium, config.clone());
    sender.pump.push(sender.source.take(1_000));
    sender.wait_for("the owner is told", |sender| sender.pump.breaks() > 5);
    let entries = fs::read_dir(config.folder.join("chunks")).unwrap();
    let sizes = entries.map(|entry| entry.unwrap().metadata().unwrap());
    let total: u64 = sizes.filter(|it| it.is_file()).map(|it| it.len()).sum();
    assert!(total > 30_000 && total <= 50_100, "{total}");
}
