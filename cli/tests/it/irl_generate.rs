//! `baler irl generate`: source code from files of the record language.

use std::fs;

use crate::support::{baler, output, workspace};

#[test]
fn generate_writes_the_types_of_a_folder_in_each_language() {
    let folder = tempfile::tempdir().unwrap();
    let types = workspace("connectors/kieker/tests/data/irl")
        .display()
        .to_string();
    for (language, file, part) in [
        (
            "c",
            "kieker_common_record_flow_trace_TraceMetadata.h",
            "int64_t traceId;",
        ),
        (
            "go",
            "kieker/common/record/flow/trace/records.go",
            "type TraceMetadata struct {",
        ),
        (
            "java",
            "kieker/common/record/flow/trace/TraceMetadata.java",
            "public long traceId",
        ),
        (
            "perl",
            "kieker/common/record/flow/trace/TraceMetadata.pm",
            "'traceId' =>",
        ),
        (
            "python",
            "kieker_common_record_flow_trace.py",
            "class TraceMetadata:",
        ),
        (
            "rust",
            "kieker_common_record_flow_trace.rs",
            "pub trace_id: i64,",
        ),
    ] {
        let out = folder.path().join(language);
        let args = ["irl", "generate", "--language", language, "--output"];
        assert_eq!(
            output(&[&args[..], &[out.to_str().unwrap(), &types]].concat()),
            ""
        );
        let text = fs::read_to_string(out.join(file)).unwrap();
        assert!(text.contains(part), "{language}: {text}");
    }
}

#[test]
fn generate_writes_nothing_for_files_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("a.irl"), folder.path().join("out"));
    let (path, target) = (file.to_str().unwrap(), out.to_str().unwrap());
    fs::write(&file, "package a event E : T").unwrap();
    let args = [
        "irl",
        "generate",
        "--language",
        "c",
        "--output",
        target,
        path,
    ];
    baler(&args).code(65);
    fs::write(&file, "package a event E { float x = 1e39 }").unwrap();
    let run = baler(&args).code(65);
    let text = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(
        text.contains("a.E: x: the value is out of the range of float"),
        "{text}"
    );
    assert!(!out.exists());
    baler(&[
        "irl",
        "generate",
        "--language",
        "cobol",
        "--output",
        target,
        path,
    ])
    .code(2);
}
