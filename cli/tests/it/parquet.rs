//! `receive --format parquet`. The tests of `analysis/src/arrow` compare the content of the files.

use std::path::{Path, PathBuf};

use predicates::str::contains;

use crate::support::{baler, file_uri, json, read_json};

/// Returns all files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

#[test]
fn several_workers_write_whole_files_into_folders_by_type_and_day() {
    let folder = tempfile::tempdir().unwrap();
    let (chunks, parquet) = (folder.path().join("chunks"), folder.path().join("parquet"));
    let summary = folder.path().join("summary.json");
    let from = file_uri(&chunks);
    let flags = ["--records", "5000", "--chunk-records", "100"];
    json(&[&["generate", "--to", &from, "--format", "json"], &flags[..]].concat());
    let receive = [
        "receive", "--from", &from, "--format", "parquet", "--output",
    ];
    let flags = [
        parquet.to_str().unwrap(),
        "--parquet-by=day,producer",
        "--parquet-records=2000",
        "--workers=2",
        "--summary",
        summary.to_str().unwrap(),
    ];
    baler(&[&receive[..], &flags[..]].concat()).success();
    let summary = read_json(&summary);
    assert_eq!(summary["records"], 5_000);
    assert_eq!(summary["acknowledged"], summary["chunks"]);
    let files = files(&parquet);
    assert!(files.len() >= 2, "{files:?}");
    for path in files {
        let name = path.strip_prefix(&parquet).unwrap().to_str().unwrap();
        let parts: Vec<_> = name.split('/').collect();
        assert_eq!(parts.len(), 5, "{name}");
        assert!(parts[0].ends_with(".OperationExecutionRecord"), "{name}");
        assert!(parts[2].starts_with("chunk_producer="), "{name}");
        assert!(parts[3].starts_with("logged_day=20"), "{name}");
        assert!(parts[4].ends_with(".parquet") && !parts[4].starts_with('.'));
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    }
}

#[test]
fn chosen_fields_are_the_columns_of_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let (chunks, parquet) = (folder.path().join("chunks"), folder.path().join("parquet"));
    let from = file_uri(&chunks);
    json(&[
        "generate",
        "--to",
        &from,
        "--records",
        "500",
        "--format",
        "json",
    ]);
    let receive = ["receive", "--from", &from, "--format", "parquet"];
    let output = ["--output", parquet.to_str().unwrap()];
    let chosen = ["--fields", "traceId,eoi", "--where", "ess == 0"];
    baler(&[&receive[..], &output, &chosen].concat()).success();
    let files = files(&parquet);
    assert!(!files.is_empty());
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        // The schema is in plain bytes.
        let has = |name: &str| bytes.windows(name.len()).any(|it| it == name.as_bytes());
        assert!(has("traceId") && has("eoi"));
        assert!(!has("operationSignature") && !has("ess"));
    }
}

#[test]
fn flags_that_do_not_go_together_are_refused() {
    let receive = ["receive", "--from", "file:///nowhere"];
    for (flags, told) in [
        (&["--format", "parquet"][..], "--output"),
        (&["--parquet-by", "day"], "--format parquet"),
        (&["--identity"], "--format json or parquet"),
    ] {
        baler(&[&receive[..], flags].concat())
            .code(78)
            .stderr(contains(told));
    }
}
