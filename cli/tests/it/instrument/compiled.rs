//! Instrumented programs that are compiled and run. They take minutes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::args;
use crate::support::{baler, json, json_lines, output, workspace};

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Every file of a folder with its bytes.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push((path.clone(), fs::read(path).unwrap())),
            }
        }
    }
    files.sort();
    files
}

/// The folder in which the test itself was built. Its crates are not built again.
fn target_folder() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(3).unwrap().to_owned()
}

#[test]
fn list_shows_the_signatures_that_records_have() {
    let folder = tempfile::tempdir().unwrap();
    let (package, records) = (folder.path().join("shop"), folder.path().join("records"));
    copy(&workspace("cli/tests/it/instrument/shop"), &package);
    let manifest = "[package]\nname = \"paper-shop\"\nedition = \"2024\"\n\n[workspace]\n";
    fs::write(package.join("Cargo.toml"), manifest).unwrap();
    // With its versions no registry is needed.
    fs::copy(workspace("examples/Cargo.lock"), package.join("Cargo.lock")).unwrap();
    let before = contents(&package.join("src"));
    let facade = workspace("baler");
    let insert = [
        "--dependency",
        facade.to_str().unwrap(),
        "--exclude",
        "paper_shop::main",
    ];
    baler(&args(&package, "insert", &insert)).success();

    let records = format!("file://{}", records.display());
    let status = Command::new(env!("CARGO"))
        .args(["run", "--offline", "--", &records])
        .current_dir(&package)
        .env("CARGO_TARGET_DIR", target_folder())
        .status()
        .unwrap();
    assert!(status.success());
    let received = output(&["receive", "--from", &records, "--format", "json"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let recorded: BTreeSet<_> = json_lines(&received)
        .iter()
        .map(|record| text(&record["fields"]["operationSignature"]))
        // Another record describes the sender.
        .filter(|signature| !signature.is_empty())
        .collect();
    let list = json(&args(&package, "list", &["--format", "json"]));
    let listed: BTreeSet<_> = list["functions"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["state"] == "inserted")
        .map(|it| text(&it["signatures"][0]))
        .collect();
    assert!(listed.len() > 30, "{listed:?}");
    assert_eq!(recorded, listed);

    baler(&args(&package, "remove", &[])).success();
    assert!(contents(&package.join("src")) == before);
}
