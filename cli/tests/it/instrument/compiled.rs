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

/// Crates of the registry, with their versions.
const REAL: [(&str, &str); 10] = [
    ("arrayvec", "0.7.8"),
    ("bytes", "1.12.2"),
    ("either", "1.19.0"),
    ("heck", "0.5.0"),
    ("itoa", "1.0.19"),
    ("percent-encoding", "2.3.2"),
    ("semver", "1.0.28"),
    ("shlex", "2.0.1"),
    ("slab", "0.4.12"),
    ("smallvec", "1.16.6"),
];

/// Runs cargo in a folder.
fn cargo(folder: &Path, args: &[&str]) {
    let mut command = Command::new(env!("CARGO"));
    command.args(args).current_dir(folder);
    let status = command.env("CARGO_TARGET_DIR", target_folder()).status();
    assert!(status.unwrap().success(), "{args:?}");
}

/// Makes a crate `baler` with probes alone. Some tests of real crates compare with `&[]`, whose type the
/// compiler cannot infer when `serde_json` is linked, as the default features of `baler` do.
fn facade_without_serde_json(folder: &Path) -> PathBuf {
    let facade = folder.join("facade");
    fs::create_dir_all(facade.join("src")).unwrap();
    fs::write(facade.join("src/lib.rs"), "pub use real::*;\n").unwrap();
    let manifest = "[package]\nname = \"baler\"\nversion = \"0.0.1\"\nedition = \"2024\"\n\n\
                    [dependencies.real]\npackage = \"baler\"\ndefault-features = false\n\
                    features = [\"enable\", \"macros\"]\n";
    let path = format!("path = {:?}\n", workspace("baler"));
    fs::write(facade.join("Cargo.toml"), manifest.to_owned() + &path).unwrap();
    facade
}

#[test]
fn real_crates_pass_their_own_tests_with_probes() {
    let folder = tempfile::tempdir().unwrap();
    let (fetch, crates) = (folder.path().join("fetch"), folder.path().join("crates"));
    fs::create_dir_all(fetch.join("src")).unwrap();
    fs::write(fetch.join("src/lib.rs"), "").unwrap();
    let manifest = "[package]\nname = \"fetch\"\nedition = \"2024\"\n\n[dependencies]\n";
    let pinned = REAL.map(|(name, version)| format!("{name} = \"={version}\"\n"));
    fs::write(
        fetch.join("Cargo.toml"),
        manifest.to_owned() + &pinned.concat(),
    )
    .unwrap();
    cargo(&fetch, &["vendor", "--quiet", crates.to_str().unwrap()]);

    // One workspace, so that all are built at once. Other crates that came along are left out.
    let members: Vec<_> = REAL.iter().map(|(name, _)| *name).collect();
    for entry in fs::read_dir(&crates).unwrap() {
        let entry = entry.unwrap();
        if !members.iter().any(|name| entry.file_name() == *name) {
            fs::remove_dir_all(entry.path()).unwrap();
        }
    }
    let manifest = format!("[workspace]\nresolver = \"3\"\nmembers = {members:?}\n");
    fs::write(crates.join("Cargo.toml"), manifest).unwrap();
    let before = contents(&crates);
    let facade = facade_without_serde_json(folder.path());
    let insert = ["--dependency", facade.to_str().unwrap()];
    let run = baler(&args(&crates, "insert", &insert)).success();
    let told = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    let first = told.lines().next().unwrap_or_default();
    let probes = first
        .split_whitespace()
        .nth(1)
        .and_then(|it| it.parse().ok());
    assert!(probes > Some(500), "{told}");
    cargo(
        &crates,
        &["test", "--workspace", "--quiet", "--no-fail-fast"],
    );
    baler(&args(&crates, "remove", &[])).success();
    fs::remove_file(crates.join("Cargo.lock")).unwrap();
    assert!(contents(&crates) == before);
}
