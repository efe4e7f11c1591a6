//! Logs that are cut, wrong or hostile.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use baler_common::transport::{ChunkReader as _, Received, RetryClass};
use baler_connector_kieker::log::fuzzing;
use baler_connector_kieker::{KiekerLogConfig, KiekerLogReader};
use tempfile::TempDir;

use serde_json::{Value, json};

use crate::logs::{LogContent, OER, TIMESTAMP, folder, only_folder};
use crate::support::EMPTY;

#[test]
fn wrong_records_are_named_with_their_place_and_the_others_are_read() {
    let map = format!("$1={TIMESTAMP}\n$2=my.Record\nno entry\n$x=1\n$1=other\n");
    let log = "junk\n$1;1;1\n$1;1;x\n$1;x;1\n$1;2\n$1;3;4;5\n$2;1\n$3;1\n$1;1;9223372036854775808\n\
               $1;2;2\n$1;2;\u{fc}\nb\n";
    let mut log = log.as_bytes().to_vec();
    log.extend(b"$1;3;\xff\n$1;4;44");
    let content = LogContent::of(folder(&map, &log).path());
    assert_eq!(content.records.len(), 2);
    let expected = [
        "kieker.map:4: \"x\" is not the number of a string",
        "kieker.map:5: the number 1 stands for \"kieker.common.record.misc.TimestampRecord\" already",
        "kieker-1.dat:1:1: a record begins with $ and the number of its class; none begins here",
        "kieker-1.dat:3:6: field timestamp: \"x\" is not a number of type i64",
        "kieker-1.dat:4:4: field (timestamp): \"x\" is not a number of type i64",
        "kieker-1.dat:5:5: the record ends; kieker.common.record.misc.TimestampRecord has more fields",
        "kieker-1.dat:6:8: 1 fields too many for kieker.common.record.misc.TimestampRecord; is there a \
         semicolon in one of its strings?",
        "kieker-1.dat:7:2: the record type my.Record\nno entry is unknown",
        "kieker-1.dat:8:2: the map has no class 3",
        "kieker-1.dat:9:6: field timestamp: 9223372036854775808 does not fit the type i64",
        "kieker-1.dat:11:6: field timestamp: \"\u{fc}\\nb\" is not a number of type i64",
        "kieker-1.dat:13:6: the record is not UTF-8",
        "kieker-1.dat:14:1: the file ends within a record, without a line end",
    ];
    assert_eq!(content.reasons(), expected);
    let last = content.damaged.last().unwrap();
    assert_eq!(
        (&*last.bytes, &*last.origin.lane),
        (&b"$1;4;44"[..], "kieker-1.dat")
    );
    let at = usize::try_from(last.origin.position).unwrap();
    assert_eq!(&log[at..], b"$1;4;44");
}

const LIST: &str = "kieker.common.record.remotecontrol.ActivationParameterEvent";

/// Returns a line of an execution of the method with this number.
fn execution(method: u32) -> String {
    format!("$1;10{method};op.A.m{method}();S;7;10;20;h;0;0")
}

/// Returns the methods of the executions of a log with these lines, and the places of its damage.
fn methods_and_damage(log: &[u8]) -> (Vec<Value>, Vec<u64>) {
    let content = LogContent::of(folder(&format!("$1={OER}\n$2={LIST}\n"), log).path());
    let records = content.records.iter();
    let methods = records.map(|it| it["fields"]["operationSignature"].clone());
    let places = content.damaged.iter().map(|it| it.origin.position);
    (methods.collect(), places.collect())
}

#[test]
fn what_follows_a_record_and_is_none_does_not_take_the_record_with_it() {
    let (one, two) = (execution(1), execution(2));
    let after = u64::try_from(one.len() + 1).unwrap();
    let zeros = "\0".repeat(300);
    let long = "x\n".repeat(1 << 20);
    let in_a_string = one.replace("op.A.m1()", "op.A\n.m1()");
    for (case, between, damaged) in [
        ("a fragment", "ment(..);S;8;10;20;h;14;1\n".to_owned(), true),
        ("half a fragment", "ment(..)\n".to_owned(), true),
        ("zeros", zeros.clone(), true),
        ("zeros and a line end", format!("{zeros}\n"), true),
        (
            "more zeros than are read at a time",
            "\0".repeat(600_000),
            true,
        ),
        ("a fragment above the limit", long, true),
        ("bytes that are no text", "\u{fffd}".to_owned() + "\n", true),
        ("empty lines", "\n\r\n  \n".to_owned(), false),
    ] {
        let log = format!("{one}\n{between}{two}\n");
        let (methods, places) = methods_and_damage(log.as_bytes());
        assert_eq!(methods, ["op.A.m1()", "op.A.m2()"], "{case}");
        let expected = if damaged { vec![after] } else { Vec::new() };
        assert_eq!(places, expected, "{case}");
        // At the end of the log.
        let log = format!("{two}\r\n{one}\n{between}");
        let (methods, places) = methods_and_damage(log.as_bytes());
        assert_eq!(methods, ["op.A.m2()", "op.A.m1()"], "{case}");
        assert_eq!(places.len(), expected.len(), "{case}");
        // After a record with a line break in a string.
        let log = format!("{in_a_string}\n{between}{two}\n");
        let (methods, _) = methods_and_damage(log.as_bytes());
        assert_eq!(methods, ["op.A\n.m1()", "op.A.m2()"], "{case}");
    }
    let log = format!("{one} \n{two}\t\n{one} ");
    let (methods, places) = methods_and_damage(log.as_bytes());
    assert_eq!((methods.len(), places.len()), (2, 1));
    let half = [one.as_bytes(), b"\nhalf \xff"].concat();
    assert_eq!(
        methods_and_damage(&half),
        (vec![json!("op.A.m1()")], vec![after])
    );
    // Zeros before the first record, as in a file that was truncated while it was written.
    let log = format!("{zeros}{one}\n");
    assert_eq!(
        methods_and_damage(log.as_bytes()),
        (vec![json!("op.A.m1()")], vec![0])
    );
}

#[test]
fn a_line_that_continues_a_string_belongs_to_the_record_if_the_record_reads_with_it() {
    let read = |log: &str| {
        let content = LogContent::of(folder(&format!("$2={LIST}\n"), log.as_bytes()).path());
        let records = content.records.iter();
        let values = records.map(|it| it["fields"]["values"].clone());
        (values.collect::<Vec<_>>(), content.damaged.len())
    };
    assert_eq!(
        read("$2;1;p;n;2;a\nb;c\nd\n"),
        (vec![json!(["a\nb", "c\nd"])], 0)
    );
    assert_eq!(
        read("$2;1;p;n;2;a\nb;c\nd;8\n"),
        (vec![json!(["a\nb", "c"])], 1)
    );
    assert_eq!(read("$2;1;p;n;2;a;c\n\0\0"), (vec![json!(["a", "c"])], 1));
    assert_eq!(read("$2;1;p;n;0\nd\n"), (vec![json!([])], 1));
    // Half of a list is no list.
    assert_eq!(read("$2;1;p\\;q;n;2;a\\;b\n"), (vec![], 1));
}

#[test]
fn empty_lines_of_a_map_are_no_part_of_it() {
    for map in [
        format!("\n\r\n$1={TIMESTAMP}\n\n\n$2={EMPTY}\r\n  \n"),
        format!("\n1={TIMESTAMP}\n\n2={EMPTY}\n"),
        format!("$1={TIMESTAMP}\n$2={EMPTY}\n\n"),
    ] {
        let content = LogContent::of(folder(&map, b"$1;1;1\n$2;2\n").path());
        assert_eq!(
            (content.records.len(), content.reasons()),
            (2, vec![]),
            "{map:?}"
        );
    }
    let content = LogContent::of(folder(&format!("$1={EMPTY}\n\0\0\0"), b"$1;1\n").path());
    assert_eq!((content.records.len(), content.damaged.len()), (1, 1));
}

#[test]
fn reading_can_end_at_the_first_wrong_record() {
    let map = format!("$1={TIMESTAMP}\n");
    let folder = folder(&map, b"$1;1;1\n$1;1;x\n");
    let mut config = KiekerLogConfig::new(folder.path());
    config.stops_at_bad_record = true;
    let mut reader = KiekerLogReader::open(config).unwrap();
    for _ in 0..2 {
        let error = reader.receive(Instant::now()).unwrap_err();
        assert_eq!(error.class, RetryClass::Final);
        assert!(error.message.contains("kieker-1.dat:2:6: "), "{error}");
    }
}

#[test]
fn a_binary_log_is_read_up_to_where_it_is_cut_or_wrong() {
    let log = only_folder("tests/data/logs/binary-None");
    let map = fs::read_to_string(log.join("kieker.map")).unwrap();
    let mut files = fs::read_dir(&log).unwrap().map(|it| it.unwrap().path());
    let file = files.find(|path| path.extension().is_some_and(|it| it == "bin"));
    let bytes = fs::read(file.unwrap()).unwrap();
    let whole = LogContent::of(&log).records;
    for end in (0..bytes.len()).step_by(97) {
        let content = LogContent::of(folder(&map, &bytes[..end]).path());
        assert_eq!(content.records, whole[..content.records.len()], "{end}");
        assert!(content.damaged.len() < 2, "{end}");
        if let [damaged] = &content.damaged[..] {
            let at = usize::try_from(damaged.origin.position).unwrap();
            assert_eq!(damaged.bytes, bytes[at..end]);
            assert!(
                damaged.reason.contains("bytes into a record"),
                "{damaged:?}"
            );
        }
    }
    let unknown = [bytes.as_slice(), &[0, 9, 9, 9], &[7; 40]].concat();
    let folder = folder(&map, &unknown);
    fs::write(folder.path().join("kieker-2.bin"), &bytes).unwrap();
    let content = LogContent::of(folder.path());
    assert_eq!(content.records.len(), 2 * whole.len());
    let reason = format!(
        "kieker-1.dat: byte {}: a record names the string 592137, which",
        bytes.len()
    );
    assert!(
        content.reasons()[0].starts_with(&reason),
        "{:?}",
        content.reasons()
    );
}

#[test]
fn giant_ids_and_lengths_are_refused_without_memory_for_them() {
    let map = format!("$0={LIST}\n$2147483647=far\n$-1=below\n$2147483648=beyond\n");
    let strings = [0_i32, 2_147_483_647].map(i32::to_be_bytes).concat();
    let record = [&[0; 12][..], &strings, &[0x7f, 0xff, 0xff, 0xff], &[0; 99]].concat();
    let content = LogContent::of(folder(&map, &record).path());
    assert_eq!(content.records.len(), 0);
    let reasons = content.reasons();
    assert!(reasons[0].contains("2147483648"), "{reasons:?}");
    assert!(
        reasons.last().unwrap().contains("the length of a list"),
        "{reasons:?}"
    );
}

#[test]
fn a_record_that_is_too_long_is_passed_over() {
    let map = format!("$1={TIMESTAMP}\n");
    let long = "x\n".repeat(3 << 20);
    let log = format!("$1;1;1\n$1;2;{long}$1;3;3\n$1;4;{long}\n");
    let content = LogContent::of(folder(&map, log.as_bytes()).path());
    let times: Vec<_> = content.records.iter().map(|it| &it["timestamp"]).collect();
    assert_eq!(times, [1, 3]);
    let reasons = content.reasons();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(
        reasons[1].starts_with("kieker-1.dat:3145731:1: the record is longer than"),
        "{reasons:?}"
    );
}

/// Returns the bytes as each compression program writes them.
fn compressed(bytes: &[u8]) -> [(&'static str, Vec<u8>); 4] {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    zlib.write_all(bytes).unwrap();
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip2.write_all(bytes).unwrap();
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut xz = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    xz.write_all(bytes).unwrap();
    [
        ("gzip", gzip.finish().unwrap()),
        ("zlib", zlib.finish().unwrap()),
        ("bzip2", bzip2.finish().unwrap()),
        ("xz", xz.finish().unwrap()),
    ]
}

#[test]
fn a_compressed_log_that_is_cut_gives_what_can_be_decompressed() {
    let map = format!("$1={TIMESTAMP}\n");
    let log: String = (0..60_000)
        .map(|n| format!("$1;{n};{}\n", n ^ 0x5_5555))
        .collect();
    for (name, bytes) in compressed(log.as_bytes()) {
        let content = LogContent::of(folder(&map, &bytes).path());
        assert_eq!(content.records.len(), 60_000, "{name}");
        assert!(content.damaged.is_empty(), "{name}");
        let content = LogContent::of(folder(&map, &bytes[..bytes.len() * 9 / 10]).path());
        assert!(
            content.records.len() > 1_000,
            "{name}: {}",
            content.records.len()
        );
        let reasons = content.reasons();
        assert!(
            reasons.last().unwrap().contains("cannot be decompressed"),
            "{name}: {reasons:?}"
        );
    }
}

#[test]
fn a_compressed_bomb_takes_no_memory() {
    let map = format!("$1={EMPTY}\n");
    let zeros = vec![b' '; 8 << 20];
    for (name, bytes) in compressed(&zeros) {
        let content = LogContent::of(folder(&map, &bytes).path());
        assert_eq!(
            (content.records.len(), content.damaged.len()),
            (0, 1),
            "{name}"
        );
        assert!(content.damaged[0].bytes.len() <= 64 << 10);
    }
}

#[test]
fn corpus_of_the_fuzz_target_yields_no_finding() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/log");
    let folder = TempDir::new().unwrap();
    let (mut records, mut damaged) = (0, 0);
    for entry in fs::read_dir(corpus).unwrap() {
        let path = entry.unwrap().path();
        let outcome = fuzzing::read(&fs::read(&path).unwrap(), folder.path())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        records += outcome.records;
        damaged += outcome.damaged;
    }
    assert!(records > 20, "the corpus has records: {records}");
    assert!(damaged > 5, "the corpus has wrong lines: {damaged}");
}

#[test]
fn settings_of_a_look_leave_no_trace() {
    let folder = folder(&format!("$1={EMPTY}\n"), b"$1;1\n");
    let config = KiekerLogConfig::new(folder.path());
    let mut reader = KiekerLogReader::open(config).unwrap();
    let Received::Chunk(delivery) = reader.receive(Instant::now()).unwrap() else {
        panic!("no chunk");
    };
    assert_eq!(delivery.meta.unwrap().records, 1);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}
