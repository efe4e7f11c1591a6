//! Documents for programs: pure, complete, and with figures that add up; tables for people.

use serde_json::Value;

use crate::support::{baler, command, file_uri, json, json_lines, output, workspace};

fn sum(counts: &Value) -> u64 {
    let counts = counts.as_object().unwrap().values();
    counts.map(|count| count.as_u64().unwrap()).sum()
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no count"))
}

#[test]
fn demo_adds_up_and_shows_operations_and_a_call_tree() {
    let demo = json(&[
        "demo",
        "--seconds",
        "1",
        "--threads",
        "3",
        "--format",
        "json",
    ]);
    let delivered = number(&demo["delivered"]);
    assert!(delivered > 100, "{delivered}");
    assert_eq!(number(&demo["emitted"]), delivered + sum(&demo["dropped"]));
    assert_eq!(number(&demo["received"]), delivered);
    assert_eq!(demo["adds_up"], true);
    assert!(number(&demo["chunks"]) > 0 && number(&demo["bytes"]) > 0);
    assert!(number(&demo["kieker_bytes"]) > number(&demo["bytes"]));

    let operations = demo["operations"].as_array().unwrap();
    let calls: u64 = operations.iter().map(|it| number(&it["count"])).sum();
    let visits = operations
        .iter()
        .find(|it| {
            it["operation"]
                .as_str()
                .unwrap()
                .contains("frontend.visit(")
        })
        .unwrap();
    let served = sum(&demo["visits"]);
    assert_eq!(number(&visits["count"]), served, "each visit is one call");
    let failed = number(&demo["visits"]["failed"]);
    assert!(failed > 0);
    assert_eq!(number(&visits["failed"]), failed);
    assert_eq!(
        2 * calls + served + 1,
        delivered,
        "two events a call, the metadata of each trace, and those of the producer"
    );

    let tree = demo["call_tree"]["executions"].as_array().unwrap();
    assert!(tree.len() > 5, "{tree:?}");
    for (eoi, call) in tree.iter().enumerate() {
        assert_eq!(call["eoi"], eoi);
        assert!(call["self_ns"].as_i64().unwrap() <= call["total_ns"].as_i64().unwrap());
    }
    assert_eq!(tree[0]["ess"], 0);
}

#[test]
fn demo_adds_up_under_every_policy() {
    for policy in ["block-with-timeout", "drop-newest", "drop-oldest"] {
        let args = [
            "demo",
            "--seconds",
            "1",
            "--format",
            "json",
            "--queue-bytes",
            "8KiB",
        ];
        let demo = json(
            &[
                args.as_slice(),
                &["--overflow", policy, "--block-timeout", "1ms"],
            ]
            .concat(),
        );
        assert_eq!(
            number(&demo["emitted"]),
            number(&demo["delivered"]) + sum(&demo["dropped"]),
            "{policy}"
        );
        assert_eq!(demo["received"], demo["delivered"], "{policy}");
    }
}

#[test]
fn tables_fit_into_as_many_columns_as_there_are() {
    let output = |args: &[&str]| {
        let run = command().args(args).env("COLUMNS", "100").output().unwrap();
        assert!(run.status.success(), "{run:?}");
        String::from_utf8([run.stdout, run.stderr].concat()).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let uri = file_uri(&folder.path().join("chunks"));
    let mut texts = vec![
        output(&["demo", "--seconds", "1"]),
        output(&["generate", "--to", &uri, "--records", "2000"]),
        output(&["receive", "--from", &uri]),
    ];
    let operations = ["--format", "none", "--operations"];
    texts.push(output(
        &[&["receive", "--from", &uri][..], &operations].concat(),
    ));
    for text in texts {
        assert!(text.lines().count() > 2, "{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}

#[test]
fn generate_is_the_same_for_a_seed_and_delivers_all() {
    let folder = tempfile::tempdir().unwrap();
    let records = |name: &str, seed: &str| {
        let uri = file_uri(&folder.path().join(name));
        let made = json(&[
            "generate",
            "--to",
            &uri,
            "--records",
            "3000",
            "--seed",
            seed,
            "--format",
            "json",
        ]);
        assert_eq!(number(&made["emitted"]), 3_000);
        assert_eq!(number(&made["delivered"]), 3_000);
        output(&["receive", "--from", &uri, "--format", "json"])
    };
    let first = records("a", "7");
    assert_eq!(json_lines(&first).len(), 3_000);
    assert!(
        first == records("b", "7"),
        "the same seed made other records"
    );
    assert!(
        first != records("c", "8"),
        "another seed made the same records"
    );
}

#[test]
fn generate_keeps_the_rate_that_is_asked_for() {
    let made = json(&[
        "generate",
        "--to",
        "null:",
        "--records",
        "1000",
        "--rate",
        "1000",
        "--threads",
        "2",
        "--format",
        "json",
    ]);
    assert_eq!(number(&made["delivered"]), 1_000);
    // The last record is due after 999 ms, never earlier.
    assert!(made["seconds"].as_f64().unwrap() >= 0.999, "{made}");
    assert!(made["most_behind_seconds"].is_f64());
}

#[test]
fn a_chunk_closes_by_the_reason_that_was_asked_for() {
    let made = |flags: &[&str]| {
        let args = [
            "generate",
            "--to",
            "null:",
            "--records",
            "1000",
            "--format",
            "json",
        ];
        json(&[args.as_slice(), flags].concat())
    };
    let by_records = made(&["--chunk-records", "100", "--wait-time", "1m"]);
    assert!(
        number(&by_records["closed_by"]["records"]) >= 10,
        "{by_records}"
    );
    let by_bytes = made(&["--chunk-bytes", "4KiB", "--wait-time", "1m"]);
    assert!(number(&by_bytes["closed_by"]["bytes"]) > 0, "{by_bytes}");
}

#[test]
fn inspect_shows_golden_chunks_of_kieker() {
    let folder = workspace("connectors/kieker/tests/golden");
    let document = json(&["inspect", folder.to_str().unwrap(), "--format", "json"]);
    let chunks = document["chunks"].as_array().unwrap();
    let records: Vec<u64> = chunks.iter().map(|it| number(&it["records"])).collect();
    assert_eq!(records, [1, 16, 32, 13]);
    for chunk in chunks {
        assert_eq!(chunk["container"], "kieker");
        assert_eq!(chunk["format"], "dflt");
        assert_eq!(chunk["compression"], "none");
    }
    let bytes: Vec<u64> = chunks.iter().map(|it| number(&it["bytes"])).collect();
    assert_eq!(bytes[..3], [171, 1_347, 2_611]);
    assert_eq!(number(&chunks[3]["strings"]), 36);
    assert_eq!(chunks[3]["schemas"].as_array().unwrap().len(), 13);
}

#[test]
fn inspect_accounts_for_the_bytes_of_native_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let mut compressed = 0;
    for compression in ["none", "lz4", "zstd"] {
        let chunks = folder.path().join(compression);
        let to = file_uri(&chunks);
        let flags = ["--compression", compression, "--chunk-records", "1200"];
        let args = ["generate", "--to", &to, "--records", "3600"];
        output(&[args.as_slice(), &flags].concat());
        let path = chunks.to_str().unwrap();
        let shown = ["--records", "2", "--strings", "3", "--format", "json"];
        let document = json(&[["inspect", path].as_slice(), &shown].concat());
        let found = document["chunks"].as_array().unwrap();
        let records: u64 = found.iter().map(|it| number(&it["records"])).sum();
        assert_eq!(records, 3_600);
        assert!(document["broken"].as_array().unwrap().is_empty());
        for (sequence, chunk) in found.iter().enumerate() {
            assert_eq!(chunk["container"], "native");
            assert_eq!(chunk["format"], "columnar");
            assert_eq!(chunk["identity"]["sequence"], sequence);
            let layout = &chunk["layout"];
            assert_eq!(
                number(&chunk["bytes"]),
                number(&layout["header_bytes"]) + number(&layout["stored_body_bytes"])
            );
        }
        let first = &found[0];
        let layout = &first["layout"];
        if first["compression"] == "none" {
            assert_eq!(layout["stored_body_bytes"], layout["body_bytes"]);
        } else {
            // A part that compression does not make smaller stays as it is.
            assert_eq!(first["compression"], compression);
            assert!(number(&layout["stored_body_bytes"]) < number(&layout["body_bytes"]));
        }
        compressed += u32::from(first["compression"] != "none");
        assert_eq!(first["first_strings"].as_array().unwrap().len(), 3);
        assert_eq!(first["first_records"].as_array().unwrap().len(), 2);
        assert_eq!(first["schemas"][0]["fields"].as_array().unwrap().len(), 8);
        let columns = first["layout"]["columns"].as_array().unwrap();
        // The chunk stores the id of a trace once, and each row says which of the stored ids it
        // has.
        let mut fields: Vec<_> = columns
            .iter()
            .map(|it| it["field"].as_str().unwrap())
            .collect();
        fields.sort_unstable();
        fields.dedup();
        assert_eq!(
            (fields.len(), columns.len()),
            (9, 10),
            "eight fields and the timestamp"
        );
        let parts: u64 = columns.iter().map(|it| number(&it["bytes"])).sum::<u64>()
            + number(&first["layout"]["schema_bytes"])
            + number(&first["layout"]["string_bytes"])
            + number(&first["layout"]["order_bytes"]);
        // The rest are counts and lengths of the parts.
        let body = number(&first["layout"]["body_bytes"]);
        assert!(parts <= body && body - parts < 16, "{parts} of {body}");

        let one = json(&["inspect", path, "--count", "1", "--format", "json"]);
        assert_eq!(one["chunks"].as_array().unwrap().len(), 1);
        assert_eq!(one["more"], true);
    }
    assert!(compressed > 0, "nothing made any chunk smaller");
}

#[test]
fn receive_writes_csv_and_plain_files() {
    let folder = tempfile::tempdir().unwrap();
    let uri = file_uri(&folder.path().join("chunks"));
    output(&["send", "--from", &crate::support::real_log(), "--to", &uri]);
    let csv = folder.path().join("csv");
    let flags = ["--format", "csv", "--output", csv.to_str().unwrap()];
    baler(&[["receive", "--from", &uri].as_slice(), &flags].concat())
        .success()
        .stdout("");
    let name = "kieker.common.record.controlflow.OperationExecutionRecord.csv";
    let text = std::fs::read_to_string(csv.join(name)).unwrap();
    assert_eq!(text.lines().count(), 6_541, "a header and 6,540 executions");
    assert!(
        text.starts_with("(timestamp),operationSignature,sessionId,traceId,"),
        "{text:.80}"
    );
}

#[test]
fn completions_are_scripts_that_know_every_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = output(&["completions", shell]);
        for command in [
            "demo",
            "generate",
            "send",
            "receive",
            "inspect",
            "tap",
            "top",
            "completions",
        ] {
            assert!(script.contains(command), "{shell} lacks {command}");
        }
    }
    baler(&["completions", "bsh"]).code(2);
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man");
    output(&["man", &pages.display().to_string()]);
    for name in [
        "baler",
        "baler-receive",
        "baler-relay",
        "baler-send",
        "baler-verify",
    ] {
        let page = std::fs::read_to_string(pages.join(name).with_extension("1")).unwrap();
        assert!(page.contains(".SH NAME"), "{name}");
    }
    let hidden = pages.join("baler-verify-producer.1");
    assert!(!hidden.exists());
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    baler(&["man", &file.display().to_string()]).code(74);
}

#[test]
fn help_documents_exit_codes() {
    let help = output(&["--help"]);
    for code in [" 65 ", " 69 ", " 75 ", " 78 "] {
        assert!(help.contains(code), "{help}");
    }
    assert!(
        help.lines().all(|line| line.chars().count() <= 100),
        "{help}"
    );
}

#[test]
fn overhead_measures_probes_beside_their_controls() {
    let rows = json(&[
        "overhead",
        "--quick",
        "--only",
        "none,clock,deactivated,operation",
        "--format",
        "json",
    ]);
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!(row["failure"], Value::Null, "{row:#}");
        assert_eq!(number(&row["lost"]), 0, "{row:#}");
        assert_eq!(number(&row["threads"]), 1, "{row:#}");
        for figure in ["median_ns_per_call", "mean_ns_per_call", "times_clock"] {
            assert!(row[figure].as_f64().unwrap() > 0.0, "{row:#}");
        }
    }
    // Rivals are the benches' alone.
    let list = output(&["overhead", "--list"]);
    assert!(list.contains("\noperation: ") && !list.contains("fastrace"));
}

#[test]
fn a_variant_that_there_is_not_is_a_wrong_command_line_and_the_choices_are_named() {
    let assert = baler(&["overhead", "--only", "nonsense"]).code(2);
    let errors = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(
        errors.contains("nonsense") && errors.contains("clock, instant"),
        "{errors}"
    );
}

/// Users learn the cost of a probe on their machine, and no verdict of the project.
#[test]
fn overhead_passes_no_verdict() {
    let text = output(&[
        "overhead",
        "--quick",
        "--only",
        "none,deactivated,clock,operation",
    ]);
    for word in ["target", "missed", "met"] {
        assert!(!text.contains(word), "{text}");
    }
}
