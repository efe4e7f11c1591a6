//! Attacks through the input of the program, and their required outcomes.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::{FileTypeExt as _, lchown, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use baler_common::container::{ChunkHeader, ChunkSerializer as _, Compression, NativeSerializer};
use baler_common::record::{BatchBuilder, DynamicRecord, Field, FieldType, Schema, Value};
use baler_common::transport::uri::Uri;
use baler_common::transport::{
    Chunk, ChunkIdentity, ChunkMeta, ChunkWriter as _, ContainerKind, Epoch, ProducerId,
};
use baler_connector_file::{FileWriter, FileWriterConfig};
use baler_connector_tcp::{TcpConfig, TcpWriter};
use baler_connector_testkit::PATIENCE;
use bytes::Bytes;

use crate::observability::sum;
use crate::poison::send;
use crate::support::{Background, baler, command, file_uri, output, read_json, wait_for};

/// The number of records in the bomb. A decoder accepts four times as many.
const BOMB_RECORDS: u32 = 1 << 20;

const MIB: u64 = 1 << 20;

const TOKEN: &str = "a token of some length";

/// Returns a chunk of about a thousand bytes that expands to 1 GiB of text: many records with the
/// same string of 1,000 bytes.
fn bomb() -> Bytes {
    let bytes = repeated(1_000, BOMB_RECORDS);
    assert!(bytes.len() < 2_000, "{} bytes", bytes.len());
    bytes
}

/// Returns a chunk of records that each have a text of this length.
fn repeated(length: usize, records: u32) -> Bytes {
    chunk_of(0, records, &"x".repeat(length))
}

/// Returns the chunk with this sequence number: records with the same text.
fn chunk_of(sequence: u64, records: u32, text: &str) -> Bytes {
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

/// Writes chunks into a folder. Returns its URI.
pub(crate) fn store(folder: &Path, chunks: Vec<Bytes>) -> String {
    let uri = file_uri(folder);
    let config = FileWriterConfig::from_uri(Uri::parse(&uri).unwrap()).unwrap();
    let chunks = chunks.into_iter().zip(0..);
    let chunks = chunks.map(|(bytes, ticket)| chunk(ticket, bytes));
    send(Box::new(FileWriter::new(config)), chunks.collect());
    uri
}

fn chunk(ticket: u64, bytes: Bytes) -> Chunk {
    Chunk {
        ticket,
        meta: ChunkMeta {
            container: ContainerKind::Native,
            records: BOMB_RECORDS,
            identity: identity(ticket),
        },
        bytes,
    }
}

/// A chunk that disappeared from the medium is no success.
#[test]
fn a_missing_chunk_is_told_by_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    for (name, sequences, code) in [
        ("whole", &[0, 1, 2, 3][..], 0),
        ("missing", &[0, 1, 3], 65),
        // Another process may have read the chunks before the first one.
        ("later", &[2, 3], 0),
    ] {
        let chunks = sequences.iter().map(|it| chunk_of(*it, 10, "x")).collect();
        let from = store(&folder.path().join(name), chunks);
        baler(&["receive", "--from", &from, "--format", "none"]).code(code);
        let send = ["send", "--from", &from, "--to", "null:", "--format", "json"];
        let run = baler(&send).code(code);
        let told: serde_json::Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
        assert_eq!(told["source"]["missing"], u64::from(code != 0), "{name}");
    }
}

/// Returns the peak of a process's memory, in bytes.
pub(crate) fn peak_memory(process: &Background) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
    let peak = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kib: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}

/// Returns the number of bytes in the files below a folder, or in a file. Incomplete files of
/// Parquet have hidden names, and do not count.
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

/// A chunk that expands to 1 GiB of output is written in slices. Records come out, and memory stays
/// near the size of the decoded columns.
#[test]
fn a_chunk_that_expands_is_written_within_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    let stored = store(&folder.path().join("chunks"), vec![bomb()]);
    // So much output shows that the sink is in the middle of the chunk. Parquet keeps one copy of
    // the text, so its file is small and the whole chunk is written.
    let (file, tcp) = (&*stored, "tcp://127.0.0.1:0");
    for (name, from, format, enough) in [
        ("json over TCP", tcp, "json", 32 * MIB),
        ("json", file, "json", 32 * MIB),
        ("csv", file, "csv", 32 * MIB),
        ("table", file, "table", 32 * MIB),
        #[cfg(feature = "parquet")]
        ("parquet", file, "parquet", 1),
    ] {
        let output = folder.path().join(name);
        let path = output.to_str().unwrap();
        let args = ["receive", "--from", from, "--follow", "--format", format];
        let mut receiver = Background::start(&[&args[..], &["--output", path]].concat());
        let mut sender = None;
        if from == tcp {
            let line = receiver.wait_for_message("listening on ");
            let (_, port) = line.trim().rsplit_once(':').unwrap();
            let config = TcpConfig::new("127.0.0.1", port.parse().unwrap());
            let mut writer = TcpWriter::new(config);
            writer.reopen(Instant::now() + PATIENCE).unwrap();
            writer.offer(chunk(0, bomb())).unwrap();
            // As long as the receiver works on its chunk.
            sender = Some(writer);
        }
        wait_for("output", || {
            assert!(receiver.is_running(), "{name}: the receiver has ended");
            (size(&output) >= enough).then_some(())
        });
        let peak = peak_memory(&receiver);
        assert!(peak < 256 * MIB, "{name}: {} MiB", peak / MIB);
        drop(sender);
    }
}

/// The summary and a metric report two chunks with one identity.
#[test]
fn a_chunk_with_the_identity_of_another_one_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let from = store(
        &folder.path().join("chunks"),
        vec![repeated(5, 3), repeated(6, 4), repeated(5, 3)],
    );
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (summary, metrics, aside) = (path("summary"), path("metrics"), path("quarantine"));
    let args = ["receive", "--from", &from, "--format", "none"];
    let files = ["--summary", &summary, "--metrics-file", &metrics];
    let run = baler(&[&args[..], &files, &["--quarantine", &aside]].concat()).code(65);
    let told = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    let row = told.lines().find(|line| line.contains("conflicts"));
    assert!(row.is_some_and(|row| row.ends_with(" 1")), "{told}");
    let summary = read_json(Path::new(&summary));
    assert_eq!(summary["conflicts"], 1);
    assert_eq!(summary["duplicates_within_reader"], 1);
    assert_eq!(
        (&summary["quarantined"], &summary["records"]),
        (&1.into(), &3.into())
    );
    let metrics = fs::read_to_string(metrics).unwrap();
    assert_eq!(sum(&metrics, "baler_chunks_conflicting_total"), 1.0);
}

/// A command that listens beyond its own machine warns, unless senders must prove something.
#[test]
fn a_listener_that_is_open_to_all_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    fs::write(&token, TOKEN).unwrap();
    let guarded = format!("tcp://0.0.0.0:0?token_file={}", token.display());
    for (from, in_environment, warnings) in [
        ("tcp://0.0.0.0:0", None, 1),
        ("tcp://127.0.0.1:0", None, 0),
        ("tcp://0.0.0.0:0", Some(TOKEN), 0),
        (guarded.as_str(), None, 0),
    ] {
        let mut command = command();
        command.args(["receive", "--from", from, "--format", "none"]);
        command.args(["--port-file", folder.path().join("port").to_str().unwrap()]);
        in_environment.map(|token| command.env("BALER_TOKEN", token));
        let receiver = Background::spawn(&mut command);
        wait_for("the port", || fs::read(folder.path().join("port")).ok());
        fs::remove_file(folder.path().join("port")).unwrap();
        receiver.signal("TERM");
        let (status, _, told) = receiver.end();
        assert!(status.success(), "{status}: {told}");
        let found = told
            .lines()
            .filter(|it| it.starts_with("warning: any host that reaches"));
        assert_eq!(found.count(), warnings, "{from}: {told}");
        assert!(!told.contains(TOKEN), "{told}");
    }
}

/// A token of the environment admits senders as one in a file does.
#[test]
fn the_token_of_the_environment_is_demanded_and_proved() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (port, aside) = (path("port"), path("quarantine"));
    let mut receive = command();
    let args = ["receive", "--from", "tcp://127.0.0.1:0", "--count", "100"];
    receive.args(args).args(["--format", "none"]);
    receive.args(["--port-file", &port, "--quarantine", &aside]);
    let receiver = Background::spawn(receive.env("BALER_TOKEN", TOKEN));
    let address = wait_for("the port", || fs::read_to_string(&port).ok());
    let to = format!("tcp://{}", address.trim());
    for (token, code) in [
        (None, 69),
        (Some("another token of length"), 69),
        (Some(TOKEN), 0),
    ] {
        let mut generate = command();
        generate.args(["generate", "--to", &to, "--records", "100"]);
        token.map(|token| generate.env("BALER_TOKEN", token));
        let (status, _, told) = Background::spawn(&mut generate).end();
        assert_eq!(status.code(), Some(code), "{token:?}: {told}");
        assert_eq!(told.contains("token_file"), code != 0, "{told}");
    }
    // Refused peers are in the quarantine, by name.
    let (status, _, told) = receiver.end();
    assert_eq!(status.code(), Some(65), "{told}");
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

/// A flood of bad connections leaves an example of each kind, and counts that add up.
#[test]
fn a_flood_of_bad_connections_leaves_few_files_and_all_counts() {
    for (command, from, connections) in [
        ("receive", "tcp://127.0.0.1:0", 10_000),
        ("receive", "kieker+tcp://127.0.0.1:0", 500),
        ("relay", "tcp://127.0.0.1:0", 500),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (port, aside, metrics) = (path("port"), path("quarantine"), path("metrics"));
        let summary = path("summary");
        let mut args = vec![command, "--from", from, "--quarantine", &aside];
        args.extend(["--port-file", &port, "--metrics-file", &metrics]);
        match command {
            "relay" => args.extend(["--to", "null:", "--format", "json"]),
            _ => args.extend(["--format", "none", "--summary", &summary]),
        }
        let process = Background::start(&args);
        let address = wait_for("the port", || fs::read_to_string(&port).ok());
        let flood = |first: usize| {
            for number in (first..connections).step_by(4) {
                let mut peer = TcpStream::connect(address.trim()).unwrap();
                // Different bytes, lengths and kinds.
                let bytes = match number % 3 {
                    0 => format!("GET /{number} HTTP/1.1\r\n\r\n").into_bytes(),
                    1 => vec![0x80; 100 + number % 500],
                    _ => number.to_le_bytes().repeat(8),
                };
                // The receiver may close the connection before it has read everything.
                peer.write_all(&bytes).ok();
                peer.shutdown(Shutdown::Write).ok();
                peer.read_to_end(&mut Vec::new()).ok();
            }
        };
        thread::scope(|scope| {
            (0..4).for_each(|first| {
                scope.spawn(move || flood(first));
            });
        });
        process.signal("TERM");
        let (status, stdout, told) = process.end();
        assert_eq!(status.code(), Some(65), "{told}");
        let (figures, quarantined) = match command {
            "relay" => (serde_json::from_str(&stdout).unwrap(), "damaged"),
            _ => (read_json(Path::new(&summary)), "quarantined"),
        };
        let figures: serde_json::Value = figures;
        let count = |value: &serde_json::Value| value.as_u64().unwrap_or_default();
        let not_kept = &figures["not_kept"];
        let (repeated, unreported) = (count(&not_kept["repeated"]), count(&not_kept["unreported"]));
        let quarantined = count(&figures[quarantined]);
        assert_eq!(quarantined + unreported, connections as u64, "{figures}");
        assert!(repeated > 0, "{figures}");
        let files: Vec<_> = fs::read_dir(&aside).unwrap().collect();
        assert!(files.len() <= 64, "{command} {from}: {} files", files.len());
        let counts = files.into_iter().filter_map(|file| {
            let path = file.unwrap().path();
            let is_json = path.extension().is_some_and(|it| it == "json");
            is_json.then(|| count(&read_json(&path)["count"]).max(1))
        });
        assert_eq!(counts.sum::<u64>(), quarantined, "{figures}");
        let metrics = fs::read_to_string(metrics).unwrap();
        let counted = sum(&metrics, "baler_poison_not_kept_total");
        assert_eq!(counted, (repeated + unreported) as f64);
    }
}

/// All workers share `--decoded-limit`. A chunk that takes more goes to the quarantine.
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

/// A chunk that kills its receiver each time goes to the quarantine, and later chunks arrive.
#[test]
fn a_chunk_that_kills_its_receiver_goes_to_the_quarantine() {
    let folder = tempfile::tempdir().unwrap();
    let mut batch = BatchBuilder::new();
    let schema = Schema::new("sound", vec![Field::new("text", FieldType::String)]).unwrap();
    let text = vec![Value::String("behind".into())];
    let record = DynamicRecord::new(Arc::new(schema), Some(1), text).unwrap();
    batch.push_dynamic(&record).unwrap();
    let mut sound = Vec::new();
    NativeSerializer::default()
        .serialize(&batch.take(), &ChunkHeader::new(identity(1)), &mut sound)
        .unwrap();
    let chunks = vec![bomb(), sound.into()];
    let from = store(&folder.path().join("chunks"), chunks);
    let quarantine = folder.path().join("quarantine");
    let output = folder.path().join("records");
    let receive = ["receive", "--from", &from, "--format", "json"];
    let files = ["--output", output.to_str().unwrap(), "--overwrite"];
    let aside = ["--quarantine", quarantine.to_str().unwrap()];
    let limit = ["--max-attempts", "2"];
    let args = [&receive[..], &files, &aside, &limit].concat();
    for _ in 0..2 {
        fs::remove_file(&output).ok();
        let receiver = Background::start(&args);
        wait_for("it is in the middle of the chunk", || {
            (size(&output) >= MIB).then_some(())
        });
        // As the system does when memory runs out.
        drop(receiver);
    }
    baler(&args).code(65);
    let records = fs::read_to_string(&output).unwrap();
    assert_eq!(records.lines().count(), 1, "{} bytes", records.len());
    assert!(records.contains("behind"), "{records}");
    let kept = fs::read_dir(&quarantine)
        .unwrap()
        .map(|it| it.unwrap().path());
    let mut json = kept.filter(|it| it.extension().is_some_and(|end| end == "json"));
    let reason = fs::read_to_string(json.next().unwrap()).unwrap();
    assert!(reason.contains("died 2 times"), "{reason}");
    assert!(json.next().is_none());
}

#[test]
fn a_chunk_that_kills_a_sender_goes_to_the_quarantine() {
    let folder = tempfile::tempdir().unwrap();
    let from = store(&folder.path().join("chunks"), vec![bomb(), repeated(5, 3)]);
    let quarantine = folder.path().join("quarantine");
    let to = file_uri(&folder.path().join("out"));
    let aside = ["--quarantine", quarantine.to_str().unwrap()];
    let send = ["send", "--from", &from, "--to", &to, "--max-attempts", "1"];
    let args = [&send[..], &aside].concat();
    let sender = Background::start(&args);
    wait_for("it is in the middle of the chunk", || {
        let out = folder.path().join("out");
        let files = fs::read_dir(out).ok()?;
        let sizes = files.filter_map(|file| Some(file.ok()?.metadata().ok()?.len()));
        (sizes.sum::<u64>() > 0).then_some(())
    });
    drop(sender);
    baler(&args).code(65);
    let kept = fs::read_dir(&quarantine)
        .unwrap()
        .map(|it| it.unwrap().path());
    let mut json = kept.filter(|it| it.extension().is_some_and(|end| end == "json"));
    let reason = fs::read_to_string(json.next().unwrap()).unwrap();
    assert!(reason.contains("died 1 times"), "{reason}");
    let received = output(&["receive", "--from", &to, "--format", "json"]);
    assert!(received.lines().count() >= 3, "the chunk after it was sent");
}

/// The kinds of objects at the path of a file to write.
#[derive(Debug, Clone, Copy)]
enum Planted {
    /// A pipe with a name, as an example of a path that is not a regular file.
    Pipe,
    /// A symlink to a file, made by this user.
    OwnLink,
    /// The name under which the file used to be written first, as a symlink to a file.
    PartLink,
}

/// Files of figures replace only files that they may replace.
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
#[ignore = "needs root: scripts/test runs it for root"]
fn a_full_device_stays_a_device_as_root() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("full");
    let mut mknod = Command::new("mknod");
    let made = mknod.arg(&path).args(["c", "1", "7"]).status().unwrap();
    assert!(made.success(), "this machine lets root make no device");
    assert!(fs::write(&path, "x").is_err());
    let file = path.to_str().unwrap();
    let run = ["receive", "--from", "null:", "--format", "none"];
    baler(&[&run[..], &["--metrics-file", file]].concat()).code(74);
    let kind = fs::symlink_metadata(&path).unwrap().file_type();
    assert!(kind.is_char_device(), "the device was replaced");
}

/// A symlink that another user planted is not followed.
#[test]
#[ignore = "needs root: scripts/test runs it for root"]
fn a_symlink_of_another_user_is_refused_as_root() {
    let folder = tempfile::tempdir().unwrap();
    let (path, victim) = (folder.path().join("figures"), folder.path().join("victim"));
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, &path).unwrap();
    lchown(&path, Some(65_534), None).unwrap();
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
