//! Attacks on the program by those who write its input, and what must come of them.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, lchown, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use baler_common::container::{ChunkHeader, ChunkSerializer as _, Compression, NativeSerializer};
use baler_common::record::{BatchBuilder, DynamicRecord, Field, FieldType, Schema, Value};
use baler_common::transport::uri::Uri;
use baler_common::transport::{Chunk, ChunkIdentity, ChunkMeta, ContainerKind, Epoch, ProducerId};
use baler_connector_file::{FileWriter, FileWriterConfig};
use bytes::Bytes;

use crate::poison::send;
use crate::support::{Background, baler, file_uri, wait_for};

/// How many records the bomb has. A decoder accepts four times as many.
const BOMB_RECORDS: u32 = 1 << 20;

const MIB: u64 = 1 << 20;

/// A chunk of about a thousand bytes that stands for 1 GiB of text: many records, each with the same
/// string of 1,000 bytes.
fn bomb() -> Bytes {
    let bytes = chunk(0, BOMB_RECORDS, &"x".repeat(1_000));
    assert!(bytes.len() < 2_000, "{} bytes", bytes.len());
    bytes
}

/// The chunk with this sequence number: so many records with the same text.
fn chunk(sequence: u64, records: u32, text: &str) -> Bytes {
    let schema =
        Arc::new(Schema::new("bomb", vec![Field::new("text", FieldType::String)]).unwrap());
    let text = vec![Value::String(text.into())];
    let record = DynamicRecord::new(schema, Some(1), text).unwrap();
    let mut batch = BatchBuilder::new();
    for _ in 0..records {
        batch.push_dynamic(&record).unwrap();
    }
    let compression = Compression::None;
    let mut bytes = Vec::new();
    NativeSerializer::new(compression)
        .unwrap()
        .serialize(
            &batch.take(),
            &ChunkHeader::new(identity(sequence)),
            &mut bytes,
        )
        .unwrap();
    Bytes::from(bytes)
}

fn identity(sequence: u64) -> ChunkIdentity {
    ChunkIdentity {
        producer: ProducerId::new(1),
        epoch: Epoch {
            start_unix_ns: 1,
            random: 1,
        },
        lane: 0,
        sequence,
    }
}

/// Writes chunks into a folder; its URI.
fn store(folder: &Path, chunks: Vec<Bytes>) -> String {
    let uri = file_uri(folder);
    let config = FileWriterConfig::from_uri(Uri::parse(&uri).unwrap()).unwrap();
    let chunks = chunks.into_iter().zip(0..).map(|(bytes, ticket)| Chunk {
        ticket,
        meta: ChunkMeta {
            container: ContainerKind::Native,
            records: BOMB_RECORDS,
            identity: identity(ticket),
        },
        bytes,
    });
    send(Box::new(FileWriter::new(config)), chunks.collect());
    uri
}

/// A chunk that disappeared from the medium is no success.
#[test]
fn a_missing_chunk_is_told_by_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    for (name, sequences, code) in [
        ("whole", &[0, 1, 2, 3][..], 0),
        ("missing", &[0, 1, 3], 65),
        // What was before the first chunk may have been read by another process.
        ("later", &[2, 3], 0),
    ] {
        let chunks = sequences.iter().map(|it| chunk(*it, 10, "x")).collect();
        let from = store(&folder.path().join(name), chunks);
        baler(&["receive", "--from", &from, "--format", "none"]).code(code);
        let send = ["send", "--from", &from, "--to", "null:", "--format", "json"];
        let run = baler(&send).code(code);
        let told: serde_json::Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
        assert_eq!(told["source"]["missing"], u64::from(code != 0), "{name}");
    }
}

/// The peak of a process's memory, in bytes.
fn peak_memory(process: &Background) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
    let peak = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kib: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}

/// How many bytes are in the files below a folder, or in a file. Files of Parquet that are not whole
/// yet have hidden names, and do not count.
fn size(path: &Path) -> u64 {
    let Ok(metadata) = fs::metadata(path) else {
        return 0;
    };
    if metadata.is_file() {
        let name = path.file_name().unwrap().as_encoded_bytes();
        return if name.starts_with(b".") {
            0
        } else {
            metadata.len()
        };
    }
    let entries = fs::read_dir(path).unwrap();
    entries.map(|entry| size(&entry.unwrap().path())).sum()
}

/// A chunk that expands to 1 GiB of output is written in slices: records come out, and memory stays
/// near what the decoded columns take.
#[test]
fn a_chunk_that_expands_is_written_within_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    let from = store(&folder.path().join("chunks"), vec![bomb()]);
    // So much output shows that the sink is in the middle of the chunk. Parquet keeps one copy of
    // the text, so its file is small and the whole chunk is written.
    for (format, enough) in [
        ("json", 32 * MIB),
        ("csv", 32 * MIB),
        ("table", 32 * MIB),
        #[cfg(feature = "parquet")]
        ("parquet", 1),
    ] {
        let output = folder.path().join(format);
        let path = output.to_str().unwrap();
        let args = ["receive", "--from", &from, "--follow", "--format", format];
        let mut receiver = Background::start(&[&args[..], &["--output", path]].concat());
        wait_for("output", || {
            assert!(receiver.is_running(), "{format}: the receiver has ended");
            (size(&output) >= enough).then_some(())
        });
        let peak = peak_memory(&receiver);
        assert!(peak < 256 * MIB, "{format}: {} MiB", peak / MIB);
    }
}

/// While a chunk expands, a signal ends the program in its time. Nobody reads standard output.
#[test]
fn a_chunk_that_expands_holds_up_no_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let from = store(&folder.path().join("chunks"), vec![bomb()]);
    for (format, to_file) in [
        ("json", true),
        ("json", false),
        ("csv", true),
        ("table", false),
    ] {
        let output = folder.path().join(format);
        let mut args = vec!["receive", "--from", &from, "--follow", "--format", format];
        args.extend(["--shutdown-timeout", "1s"]);
        if to_file {
            args.extend(["--output", output.to_str().unwrap()]);
        }
        let mut receiver = Background::start(&args);
        if to_file {
            wait_for("output", || (size(&output) > MIB).then_some(()));
        } else {
            receiver.wait_for_output();
        }
        receiver.signal("TERM");
        let asked = Instant::now();
        wait_for("the end", || (!receiver.is_running()).then_some(()));
        let took = asked.elapsed();
        assert!(took < Duration::from_secs(10), "{format}: {took:?}");
        assert_eq!(receiver.end().0.code(), Some(75), "{format}");
    }
}

/// `--decoded-limit` is what all workers share: what takes more goes to the quarantine.
#[test]
fn a_chunk_above_the_decoded_limit_goes_to_the_quarantine() {
    let folder = tempfile::tempdir().unwrap();
    let from = store(&folder.path().join("chunks"), vec![bomb()]);
    for (limit, workers, code) in [("1GiB", "1", 0), ("8MiB", "1", 65), ("64MiB", "8", 65)] {
        let quarantine = folder.path().join(format!("quarantine-{limit}"));
        let args = ["receive", "--from", &from, "--format", "none"];
        let limits = ["--decoded-limit", limit, "--workers", workers];
        let aside = ["--quarantine", quarantine.to_str().unwrap()];
        let run = baler(&[&args[..], &limits, &aside].concat()).code(code);
        let kept = fs::read_dir(&quarantine).map_or(0, Iterator::count);
        let expected = if code == 0 { 0 } else { 2 };
        assert_eq!(kept, expected, "{limit}: {:?}", run.get_output());
    }
}

/// What stands where a file is to be written.
#[derive(Debug, Clone, Copy)]
enum Planted {
    /// A pipe with a name, as an example of what is no regular file.
    Pipe,
    /// A symlink to a file, made by this user.
    OwnLink,
    /// The name under which the file used to be written first, as a symlink to a file.
    PartLink,
}

/// Files of figures replace only what may be replaced.
#[test]
fn files_of_figures_replace_nothing_that_is_not_theirs() {
    for (planted, victim_is_written) in [
        (Planted::Pipe, true),
        (Planted::OwnLink, true),
        (Planted::PartLink, false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("figures");
        let victim = folder.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let mut reader = None;
        match planted {
            Planted::Pipe => {
                let made = Command::new("mkfifo").arg(&path).status().unwrap();
                assert!(made.success());
                let (pipe, copy) = (path.clone(), victim.clone());
                let copied = move || fs::write(copy, fs::read(pipe).unwrap()).unwrap();
                reader = Some(thread::spawn(copied));
            }
            Planted::OwnLink => symlink(&victim, &path).unwrap(),
            Planted::PartLink => symlink(&victim, folder.path().join("figures.part")).unwrap(),
        }
        let before = fs::symlink_metadata(&path).map(|it| it.file_type()).ok();
        let file = path.to_str().unwrap();
        let run = [
            "receive",
            "--from",
            "null:",
            "--format",
            "none",
            "--summary",
        ];
        baler(&[&run[..], &[file]].concat()).success();
        reader.into_iter().for_each(|it| it.join().unwrap());
        let after = fs::symlink_metadata(&path).map(|it| it.file_type()).ok();
        assert!(before.is_none() || before == after, "{planted:?}");
        let text = fs::read_to_string(&victim).unwrap();
        assert_eq!(text.contains("ended_by"), victim_is_written, "{planted:?}");
        assert_eq!(text == "precious", !victim_is_written, "{planted:?}");
    }
}

/// A full device stays one, and ends the command with the code of an output that cannot be written.
#[test]
fn a_full_device_stays_a_device() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("full");
    let mut mknod = Command::new("mknod");
    let made = mknod.arg(&path).args(["c", "1", "7"]).status();
    if !made.is_ok_and(|it| it.success()) || fs::write(&path, "x").is_ok() {
        eprintln!("skipped: only root can make a device, and not in every container");
        return;
    }
    let file = path.to_str().unwrap();
    let run = ["receive", "--from", "null:", "--format", "none"];
    baler(&[&run[..], &["--metrics-file", file]].concat()).code(74);
    let kind = fs::symlink_metadata(&path).unwrap().file_type();
    assert!(kind.is_char_device(), "the device was replaced");
}

/// As root, a symlink that another user planted is not followed.
#[test]
fn a_symlink_of_another_user_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, victim) = (folder.path().join("figures"), folder.path().join("victim"));
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, &path).unwrap();
    if lchown(&path, Some(65_534), None).is_err() {
        eprintln!("skipped: only root can give a symlink to another user");
        return;
    }
    let file = path.to_str().unwrap();
    let run = [
        "receive",
        "--from",
        "null:",
        "--format",
        "none",
        "--summary",
    ];
    let run = baler(&[&run[..], &[file]].concat()).code(74);
    let stderr = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(stderr.contains("symlink of another user"), "{stderr}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

/// A password in the wrong place, or in a misspelt setting, does not come out in an error message.
#[test]
fn no_error_message_holds_a_password() {
    for (args, code) in [
        ("receive amqp://u:hush@h/q", 2),
        ("amqp://u:hush@h/q", 2),
        ("receive --from null: --workers amqp://u:hush@h/q", 2),
        ("receive --from null: --workers=amqp:/u:hush@h/q", 2),
        ("receive --from null: --format amqp://u:hush@h/q", 2),
        ("receive --from amqp:/u:hush@h?queue=q", 78),
        ("receive --from tcp://h:1?pasword=hush", 78),
        ("receive --from tcp://h:1?tokne=hush", 78),
        ("receive --from ampq:u:hush@h", 78),
    ] {
        let args: Vec<&str> = args.split(' ').collect();
        let run = baler(&args).code(code);
        let stderr = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(!stderr.contains("hush"), "{args:?}: {stderr}");
        assert!(stderr.starts_with("error: "), "{args:?}: {stderr}");
    }
}
