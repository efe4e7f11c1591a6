//! `baler instrument`: the program from outside, and instrumented programs that are compiled.

mod compiled;

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{baler, output};

const SOURCE: &str = "/// Sells.\npub fn sell(item: &str) -> bool {\n    true\n}\n\nconst fn fixed() {}\n\nmod a {\n    fn b() {}\n}\n";

fn package(source: impl AsRef<[u8]>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let manifest = "[package]\nname = \"shop\"\nedition = \"2024\"\n";
    fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("src/lib.rs"), source).unwrap();
    folder
}

/// Arguments of the command for this folder.
fn args<'a>(folder: &'a Path, command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let path = folder.to_str().unwrap();
    [&["instrument", command, "--path", path], more].concat()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn insert_list_check_and_remove_agree() {
    let folder = package(SOURCE);
    let path = folder.path();
    assert_eq!(
        output(&args(path, "list", &["--include", "shop::sell"])),
        "src/lib.rs:2: selected: public bool shop.sell(str)\n\
         src/lib.rs:6: skipped (a const fn): void shop.fixed()\n\
         src/lib.rs:9: not selected: void shop.a.b()\n"
    );
    let check = baler(&args(path, "check", &["--exclude", "**::b"])).code(65);
    let missing = "src/lib.rs:2: no probe: public bool shop.sell(str)\n";
    assert_eq!(text(&check.get_output().stdout), missing);
    let dry = args(path, "insert", &["--dry-run", "--dependency", "0.1"]);
    let dry = baler(&dry).success();
    assert_eq!(
        text(&dry.get_output().stdout),
        "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1,10 +1,12 @@\n /// Sells.\n\
         +#[::baler::probe /* baler instrument */]\n pub fn sell(item: &str) -> bool {\n     true\n }\n \n \
         const fn fixed() {}\n \n mod a {\n\
         +    #[::baler::probe /* baler instrument */]\n     fn b() {}\n }\n\
         --- a/Cargo.toml\n+++ b/Cargo.toml\n@@ -1,3 +1,6 @@\n [package]\n name = \"shop\"\n \
         edition = \"2024\"\n+\n+[dependencies.baler] # baler instrument\n+version = \"0.1\"\n"
    );
    assert_eq!(
        text(&dry.get_output().stderr),
        "would insert 2 probes in 2 files\nskipped 1 function: a const fn\n"
    );
    assert_eq!(fs::read_to_string(path.join("src/lib.rs")).unwrap(), SOURCE);

    for told in [
        "inserted 2 probes in 2 files",
        "inserted 0 probes in 0 files",
    ] {
        let run = baler(&args(path, "insert", &["--dependency", "0.1"])).success();
        assert!(text(&run.get_output().stderr).starts_with(told), "{run}");
    }
    assert_eq!(output(&args(path, "check", &[])), "");
    let list: Value = crate::support::json(&args(path, "list", &["--format", "json"]));
    let states = list["functions"].as_array().unwrap().iter();
    let states: Vec<_> = states.map(|it| it["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["inserted", "skipped", "inserted"]);
    assert_eq!(list["functions"][1]["reason"], "a const fn");

    let run = baler(&args(path, "remove", &["--include", "shop::a::*"])).success();
    assert_eq!(
        text(&run.get_output().stderr),
        "removed 1 probe in 1 file\n"
    );
    let run = baler(&args(path, "remove", &[])).success();
    assert_eq!(
        text(&run.get_output().stderr),
        "removed 1 probe in 2 files\n"
    );
    assert_eq!(fs::read_to_string(path.join("src/lib.rs")).unwrap(), SOURCE);
    let manifest = fs::read_to_string(path.join("Cargo.toml")).unwrap();
    assert!(!manifest.contains("baler"), "{manifest}");
}

#[test]
fn mistakes_have_their_place_and_their_code() {
    let folder = package("fn a() {}\nmod lost;\n");
    let path = folder.path();
    let run = baler(&args(path, "insert", &[])).code(65);
    let told = text(&run.get_output().stderr);
    assert!(
        told.contains("src/lib.rs:2: there is no file of the module `lost`\n"),
        "{told}"
    );
    assert!(told.contains("inserted 1 probe in 1 file\n"), "{told}");

    let run = baler(&args(path, "list", &["--include", "shop::"])).code(78);
    let told = text(&run.get_output().stderr);
    assert!(told.contains("pattern `shop::`"), "{told}");
    baler(&args(path, "insert", &["--attribute", "trace"])).code(2);
    baler(&args(path, "insert", &["--dependency", "./none"])).code(69);
    baler(&args(&path.join("none"), "list", &[])).code(69);
    let empty = tempfile::tempdir().unwrap();
    let run = baler(&args(empty.path(), "list", &[])).code(65);
    let told = text(&run.get_output().stderr);
    assert!(
        told.contains("no Cargo.toml in the folder or below it"),
        "{told}"
    );
}

#[cfg(unix)]
#[test]
fn a_file_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = package(SOURCE);
    let file = folder.path().join("src/lib.rs");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o604)).unwrap();
    baler(&args(folder.path(), "insert", &[])).success();
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o604);
}
