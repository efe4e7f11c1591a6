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
fn dictionary_serves_those_who_look_pass_on_and_send_again() {
    let folder = tempfile::tempdir().unwrap();
    let golden = workspace("common/tests/golden/dictionary");
    let file = format!("{}/calls.zdict", golden.display());
    let chunks = file_uri(&folder.path().join("chunks"));
    let generate = ["generate", "--records", "640", "--chunk-records", "32"];
    let flags = [
        "--to",
        &chunks,
        "--compression",
        "zstd",
        "--dictionary",
        &file,
    ];
    baler(&[&generate[..], &flags].concat()).success();
    let known = ["--dictionaries", file.as_str()];

    let seen = [
        "tap",
        &chunks,
        "--from-start",
        "--count",
        "640",
        "--format",
        "json",
    ];
    let seen = baler(&[&seen[..], &known].concat()).success();
    let seen = String::from_utf8(seen.get_output().stdout.clone()).unwrap();
    assert_eq!(seen.lines().count(), 640);

    let quarantine = folder.path().join("quarantine");
    let aside = ["--quarantine", quarantine.to_str().unwrap()];
    let receive = ["receive", "--format", "none", "--from"];
    baler(&[&receive[..], &[&chunks], &aside].concat()).code(65);
    let replay = ["replay", quarantine.to_str().unwrap(), "--format", "json"];
    let checked = [&replay[..], &["--check"]].concat();
    let looked = |more: &[&str]| {
        let output = baler(&[&checked[..], more].concat())
            .get_output()
            .stdout
            .clone();
        let told: serde_json::Value = serde_json::from_slice(&output).unwrap();
        told.to_string()
    };
    assert!(looked(&[]).contains("\"decodable\":0,"), "{}", looked(&[]));
    assert!(
        looked(&known).contains("\"decodable\":20,"),
        "{}",
        looked(&known)
    );
    let again = file_uri(&folder.path().join("again"));
    baler(&[&replay[..], &["--to", &again], &known].concat()).success();

    // Sent records are encoded anew, and need no dictionary.
    let plain = file_uri(&folder.path().join("plain"));
    let send = ["send", "--from", &again, "--to", &plain];
    baler(&[&send[..], &known].concat()).success();
    let summary = folder.path().join("summary.json");
    let told = ["--summary", summary.to_str().unwrap()];
    baler(&[&receive[..], &[&plain], &told].concat()).success();
    assert_eq!(read_json(&summary)["records"], 640);
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
