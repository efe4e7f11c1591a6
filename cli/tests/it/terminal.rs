//! The output on a terminal: lines as wide as the terminal, no colours against its owner's will,
//! and no control characters from outside.

use std::fmt::Display;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use baler_common::container::{ChunkHeader, ChunkSerializer as _, Compression, NativeSerializer};
use baler_common::record::{
    BatchBuilder, DynamicRecord, EnumType, Field, FieldType, Role, Schema, Value,
};
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};

use crate::support::{Background, command, file_uri, output, wait_for};

/// Moves the cursor, in the codes of C0 and of C1, and ends the line.
const EVIL: &str = "\x1b[2J\u{9b}31m\r\nend";

/// Runs the program on a terminal of its own with this number of columns, and perhaps of rows
/// (`80 rows 24`). `script` is part of Debian's essential `bsdutils`.
fn on_terminal(columns: impl Display, args: &[&str]) -> Command {
    let words: Vec<_> = [env!("CARGO_BIN_EXE_baler")]
        .iter()
        .chain(args)
        .map(|word| format!("'{word}'"))
        .collect();
    let line = format!("stty cols {columns}; exec {}", words.join(" "));
    let plain = command();
    let mut script = Command::new("script");
    for (name, _) in plain.get_envs() {
        script.env_remove(name);
    }
    script
        .args(["--quiet", "--return", "--flush", "--command", &line])
        .arg("/dev/null")
        .env("TERM", "xterm")
        .stdin(Stdio::null());
    script
}

/// Returns the output of the program on its terminal.
fn shown(script: &mut Command) -> String {
    let run = script.output().expect("script (bsdutils) runs");
    assert!(run.status.success(), "{run:?}");
    String::from_utf8(run.stdout).unwrap()
}

/// Creates a file with one chunk of one record.
fn chunk_file(folder: &Path, type_name: &str, fields: Vec<(Field, Value)>) -> String {
    let (fields, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
    let schema = Arc::new(Schema::new(type_name, fields).unwrap());
    let record = DynamicRecord::new(schema, Some(1_283_156_545_250_000_999), values).unwrap();
    let mut builder = BatchBuilder::new();
    builder.push_dynamic(&record).unwrap();
    let header = ChunkHeader::new(ChunkIdentity {
        producer: ProducerId::new(1),
        epoch: Epoch {
            start_unix_ns: 1,
            random: 0,
        },
        lane: 0,
        sequence: 0,
    });
    let mut bytes = Vec::new();
    let mut serializer = NativeSerializer::new(Compression::None).unwrap();
    serializer
        .serialize(builder.batch(), &header, &mut bytes)
        .unwrap();
    let path = folder.join("one.chunk");
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

fn evil(folder: &Path) -> String {
    let level = Arc::new(EnumType::new("Level", [EVIL]).unwrap());
    chunk_file(
        folder,
        &format!("p.{EVIL}"),
        vec![
            (Field::new(EVIL, FieldType::String), EVIL.into()),
            (Field::new("e", FieldType::Enum(level)), Value::Variant(0)),
        ],
    )
}

#[test]
fn lines_are_as_wide_as_the_terminal_and_whole_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let uri = file_uri(folder.path());
    output(&["generate", "--to", &uri, "--records", "100"]);
    let receive = ["receive", "--from", &uri, "--count", "10", "--operations"];
    for columns in [72_u16, 130] {
        let text = shown(&mut on_terminal(columns, &receive));
        let (_, text) = text.split_once("TIMESTAMP").unwrap();
        let lines = text.lines().skip(1);
        let longest = lines.map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= usize::from(columns), "{text}");
        // Long values are shortened, and each value is there.
        assert!(text.contains('…') || columns > 72, "{text}");
        assert!(text.contains(" ess="), "{text}");
    }
    let inspect = ["inspect", folder.path().to_str().unwrap(), "--records", "3"];
    let text = shown(&mut on_terminal(72, &inspect));
    // Lines that are indented less are headings, which stay whole.
    let lines = text.lines().filter(|line| line.starts_with("    "));
    let longest = lines.map(|line| line.chars().count()).max();
    assert_eq!(longest, Some(72), "{text}");
    let text = output(&receive);
    assert!(!text.contains('…'), "{text}");
    assert!(
        text.lines()
            .all(|line| line.contains(" ess=") || line.starts_with("TIME")),
        "{text}"
    );
}

#[test]
fn times_and_spans_are_readable_and_exact_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let file = chunk_file(
        folder.path(),
        "p.T",
        vec![
            (
                Field::new("at", FieldType::I64).with_role(Role::UnixNanos),
                Value::Signed(1_500),
            ),
            (
                Field::new("took", FieldType::I64).with_role(Role::Nanos),
                Value::Signed(1_234_567),
            ),
        ],
    );
    let from = format!("file://{file}");
    let text = output(&["receive", "--from", &from]);
    let expected = "2010-08-30T08:22:25.250000Z  T                         \
                    at=1970-01-01T00:00:00.000001Z took=1.23 ms";
    assert_eq!(text.lines().nth(1), Some(expected));
    let json = output(&["receive", "--from", &from, "--format", "json"]);
    assert!(
        json.contains(r#""timestamp":1283156545250000999,"fields":{"at":1500,"took":1234567}"#)
    );
    let text = output(&["inspect", &file]);
    assert!(
        text.contains("2010-08-30T08:22:25.250000Z to 2010-"),
        "{text}"
    );
}

#[test]
fn names_and_values_cannot_control_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let file = evil(folder.path());
    let from = format!("file://{file}");
    for args in [
        &["receive", "--from", &from][..],
        &["receive", "--from", &from, "--format", "json"],
        &["inspect", &file, "--records", "1"],
        &["inspect", &file, "--records", "1", "--format", "json"],
        &["tap", &from, "--from-start", "--count", "1"],
    ] {
        let text = shown(&mut on_terminal(300, args));
        // The control characters of the program itself: the line of progress, and its end.
        let text = text
            .replace("\x1b[2K", "")
            .replace("\r\n", "\n")
            .replace('\r', "");
        let control = text.chars().find(|it| it.is_control() && *it != '\n');
        assert_eq!(control, None, "{args:?}: {text:?}");
        assert!(
            !text.lines().any(|line| line.starts_with("end")),
            "{args:?}: {text}"
        );
        assert!(
            text.contains("\\u009b31m") || text.contains("\\u{9b}31m"),
            "{args:?}: {text}"
        );
    }
}

#[test]
fn no_line_of_progress_stays_above_records() {
    let folder = tempfile::tempdir().unwrap();
    let port = folder.path().join("port");
    let log = folder.path().join("log");
    let receive = [
        "receive",
        "--from",
        "tcp://127.0.0.1:0",
        "--count",
        "3",
        "--port-file",
    ];
    let args = [&receive[..], &[port.to_str().unwrap()]].concat();
    let mut script = on_terminal(100, &args);
    let mut running = script
        .stdout(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let shown = || fs::read_to_string(&log).unwrap();
    let address = wait_for("the receiver's address", || fs::read_to_string(&port).ok());
    wait_for("the line of progress", || {
        shown().contains(" records in ").then_some(())
    });
    let to = format!("tcp://{}", address.trim());
    output(&["generate", "--to", &to, "--records", "3"]);
    let status = wait_for("the end", || running.try_wait().unwrap());
    assert!(status.success(), "{}", shown());
    // A terminal erases the line of progress, and what follows stands at the line's beginning.
    let text = shown();
    let erased = text.split("\x1b[2K").last().unwrap();
    assert!(
        erased.trim_start_matches('\r').starts_with("TIMESTAMP "),
        "{text:?}"
    );
    assert!(!erased.contains(" records in "), "{text:?}");
}

#[test]
fn logs_have_colours_on_a_terminal_unless_its_owner_wants_none() {
    let args = [
        "-vvv",
        "validate",
        "--from",
        "tcp://127.0.0.1:0",
        "--connect",
    ];
    let colourful = shown(&mut on_terminal(100, &args));
    assert!(colourful.contains("\x1b["), "{colourful:?}");
    let plain = shown(on_terminal(100, &args).env("NO_COLOR", "1"));
    assert!(plain.contains("TRACE"), "{plain:?}");
    assert!(!plain.contains('\x1b'), "{plain:?}");
}

#[test]
fn top_draws_in_place_and_q_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let (port, log) = (folder.path().join("port"), folder.path().join("log"));
    let made = ["generate", "--to", "null:", "--records", "10M", "--rate"];
    let metrics = ["100", "--metrics", "127.0.0.1:0", "--metrics-port-file"];
    let args = [&made[..], &metrics, &[port.to_str().unwrap()]].concat();
    let _generator = Background::start(&args);
    let address = wait_for("an address", || fs::read_to_string(&port).ok());
    let top = ["top", address.trim(), "--interval", "100ms"];
    let mut script = on_terminal("80 rows 12", &top);
    let mut running = script
        .stdin(Stdio::piped())
        .stdout(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let shown = || fs::read_to_string(&log).unwrap();
    wait_for("three pages", || {
        (shown().matches("q: end").count() > 3).then_some(())
    });
    let mut keys = running.stdin.take().unwrap();
    keys.write_all(b"xq").unwrap();
    assert!(running.wait().unwrap().success());
    let text = shown();
    assert!(text.starts_with("\x1b[?1049h"), "{text:?}");
    assert!(text.ends_with("\x1b[?1049l"), "{text:?}");
    for page in text.split("\x1b[H").skip(1) {
        // One line less than the terminal has, and the keys without an end of line.
        assert_eq!(page.matches('\n').count(), 11, "{page:?}");
        assert!(page.contains("more lines in a higher terminal"), "{page:?}");
    }
}
