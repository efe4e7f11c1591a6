//! Chunks that are compressed with a dictionary, sent and received.

use predicates::str::contains;

use crate::support::{baler, file_uri, json, read_json, workspace};

#[test]
fn whoever_has_the_dictionary_reads_and_whoever_lacks_it_is_told_which() {
    let folder = tempfile::tempdir().unwrap();
    let golden = workspace("common/tests/golden/dictionary");
    let golden = golden.to_str().unwrap();
    let file = format!("{golden}/calls.zdict");
    let to = file_uri(&folder.path().join("chunks"));
    let generate = ["generate", "--records", "640", "--chunk-records", "32"];
    let flags = ["--to", &to, "--compression", "zstd", "--dictionary", &file];
    json(&[&generate[..], &flags, &["--format", "json"]].concat());

    let quarantine = folder.path().join("quarantine");
    let summary = folder.path().join("summary.json");
    let receive = ["receive", "--format", "none", "--from"];
    let aside = ["--quarantine", quarantine.to_str().unwrap()];
    let from = format!("{to}?consumer=without");
    baler(&[&receive[..], &[&from], &aside].concat()).code(65);
    let reasons = std::fs::read_dir(&quarantine).unwrap();
    let reasons = reasons
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .map(|path| std::fs::read_to_string(path).unwrap());
    let reasons: Vec<_> = reasons.collect();
    assert_eq!(reasons.len(), 20);
    for reason in reasons {
        assert!(
            reason.contains("the dictionary 1723349575 is missing"),
            "{reason}"
        );
    }

    for dictionaries in [golden, &file] {
        let from = format!("{to}?consumer=with{}", dictionaries.len());
        let flags = ["--dictionaries", dictionaries, "--summary"];
        let told = [summary.to_str().unwrap()];
        baler(&[&receive[..], &[&from], &flags, &told].concat()).success();
        assert_eq!(read_json(&summary)["records"], 640);
    }
}

#[test]
fn a_dictionary_that_cannot_be_used_is_refused() {
    let golden = workspace("common/tests/golden/dictionary");
    let file = golden.join("calls.zdict");
    let chunk = golden.join("calls.chunk");
    let generate = ["generate", "--to", "null:", "--dictionary"];
    for (flags, told) in [
        (&[file.to_str().unwrap()][..], "use zstd"),
        (&[file.to_str().unwrap(), "--container", "kieker"], "kieker"),
        (
            &[chunk.to_str().unwrap(), "--compression", "zstd"],
            "no zstd dictionary",
        ),
        (
            &["/nowhere.zdict", "--compression", "zstd"],
            "/nowhere.zdict",
        ),
    ] {
        baler(&[&generate[..], flags].concat())
            .code(78)
            .stderr(contains(told));
    }
}
