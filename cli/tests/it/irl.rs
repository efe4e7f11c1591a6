//! `baler irl`: checking, formatting and showing files of the record language.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::{baler, command, json, output, read_json, workspace};

/// The folder of Kieker's files, and the file with the records of its tool opad.
fn kiekers_files() -> Vec<String> {
    let files = [
        "connectors/kieker/tests/data/irl",
        "irl/tests/fixtures/right/opad.irl",
    ];
    files.map(|it| workspace(it).display().to_string()).to_vec()
}

fn irl(command: &[&str], files: &[String]) -> Vec<String> {
    let command = ["irl"].iter().chain(command).map(|it| (*it).to_owned());
    command.chain(files.iter().cloned()).collect()
}

fn args(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}

fn file(folder: &tempfile::TempDir, name: &str, text: impl AsRef<[u8]>) -> String {
    let path: PathBuf = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn dump_shows_kiekers_types_in_wire_order() {
    let document = json(&args(&irl(&["dump", "--format", "json"], &kiekers_files())));
    let expected = read_json(&workspace(
        "connectors/kieker/tests/golden/expected-records.json",
    ));
    let records = document["records"].as_array().unwrap();
    let mut found = 0;
    for record in records.iter().filter(|it| it["abstract"] == false) {
        let name = record["name"].as_str().unwrap();
        let pairs = |fields: &Value, of: &str| -> Vec<(String, String)> {
            let fields = fields.as_array().unwrap().iter();
            let text = |value: &Value| value.as_str().unwrap().replace("String", "string");
            fields
                .map(|it| (text(&it[of]), text(&it["name"])))
                .collect()
        };
        assert_eq!(
            pairs(&record["fields"], "type"),
            pairs(&expected[name]["fields"], "java"),
            "{name}"
        );
        found += 1;
    }
    assert_eq!(found, 72);
    assert!(records.iter().any(|it| it["abstract"] == true));
    let of = |name: &str| records.iter().find(|it| it["name"] == name).unwrap();
    let cpu = of("kieker.common.record.system.CPUUtilizationRecord");
    assert_eq!(
        cpu["fields"][1]["doc"],
        "Name of the host, the resource belongs to."
    );
    assert!(
        cpu["author"].is_string() && cpu["since"].is_string(),
        "{cpu}"
    );
    let text = output(&args(&irl(&["dump"], &kiekers_files())));
    let record = "kieker.common.record.flow.trace.TraceMetadata\n  long traceId\n  long threadId\n";
    assert!(text.contains(record), "{text}");
    assert!(
        text.contains("AbstractEvent (abstract)\n  long timestamp\n"),
        "{text}"
    );
}

#[test]
fn check_shows_each_mistake_with_its_line_and_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let first = file(
        &folder,
        "a.irl",
        "package a\nevent E : T {\n\tint a = 'x'\n}\nstruct S\n",
    );
    let second = file(&folder, "b.irl", "package b\nimport c.D\ntemplate T\n");
    let files = [first.clone(), second];
    let run = baler(&args(&irl(&["check"], &files))).code(65);
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    for part in [
        "error[unknown-name]: T is not defined",
        &format!("{first}:2:11"),
        "2 | event E : T {",
        "help: add `import b.T`",
        "error[wrong-value]: a string does not fit int",
        "error[legacy]: `struct` belongs to the legacy edition of 2013",
        "warning[unknown-import]: there is no c.D to import",
        "2 files, 2 record types, 3 errors, 1 warning\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let run = baler(&args(&irl(&["check", "--format", "json"], &files))).code(65);
    let document: Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    assert_eq!(
        (&document["errors"], &document["warnings"]),
        (&3.into(), &1.into())
    );
    let legacy = &document["findings"][2];
    assert_eq!((&legacy["line"], &legacy["column"]), (&5.into(), &1.into()));
    assert_eq!(legacy["replacement"], "event");
    let run = baler(&args(&irl(&["dump", "--json"], &files))).code(65);
    assert!(run.get_output().stdout.is_empty());
    let text = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(
        text.contains("error[unknown-name]: T is not defined"),
        "{text}"
    );
}

#[test]
fn compat_names_each_change_with_its_reason_and_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let old = file(&folder, "old.irl", "package p event E { int a }");
    let new = file(
        &folder,
        "new.irl",
        "package p event E {\n\tint a = 1\n\tlong b\n}",
    );
    let run = baler(&["irl", "compat", &old, &new]).code(65);
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    for part in [
        "breaks new readers of old records, and old readers of new records:\n  p.E: long b was added; ",
        &format!("\n    {new}:3:7\n"),
        "safe:\n  p.E: the default value of a changed; it is not sent\n",
        "1 breaking, 1 safe\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let run = baler(&["irl", "compat", &old, &new, "--format", "json"]).code(65);
    let document: Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    assert_eq!(
        (&document["breaking"], &document["safe"]),
        (&1.into(), &1.into())
    );
    let change = &document["changes"][0];
    assert_eq!(
        (&change["breaks"], &change["line"]),
        (&"both".into(), &3.into())
    );
    assert_eq!(
        output(&["irl", "compat", &old, &old]),
        "0 breaking, 0 safe\n"
    );
    let kieker = &kiekers_files()[0];
    assert_eq!(
        output(&["irl", "compat", kieker, kieker]),
        "0 breaking, 0 safe\n"
    );
    let wrong = file(&folder, "wrong.irl", "package p event {");
    let run = baler(&["irl", "compat", &wrong, &new]).code(65);
    assert!(run.get_output().stdout.is_empty());
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().display().to_string();
    let run = baler(&["irl", "compat", &old, &empty]).code(65);
    let text = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(text.contains("there is no file *.irl below"), "{text}");
}

#[test]
fn from_rust_writes_the_types_of_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let lines = file(
        &folder,
        "orders.jsonl",
        "{\"type\":\"shop::Order\",\"id\":1,\"item\":\"tea\"}\n",
    );
    let chunks = folder.path().join("chunks").display().to_string();
    let (from, to) = (format!("jsonl:{lines}"), format!("file:{chunks}"));
    output(&["send", "--quiet", "--from", &from, "--to", &to]);
    let run = baler(&["irl", "from-rust", &chunks]).success();
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    assert!(
        text.starts_with("package shop\n\nevent Order {\n"),
        "{text}"
    );
    assert!(text.contains("\tlong id\n\tstring item\n"), "{text}");
    let told = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(told.contains("shop::Order becomes shop.Order"), "{told}");
    let types = folder.path().join("types").display().to_string();
    let written = output(&["irl", "from-rust", "--quiet", &chunks, "--output", &types]);
    assert_eq!(written, format!("{types}/shop.irl\n"));
    assert_eq!(fs::read_to_string(written.trim()).unwrap(), text);
    output(&["irl", "check", &types]);
    output(&["irl", "fmt", "--check", &types]);
    baler(&["irl", "from-rust", &chunks, "--output", &types]).code(78);
}

#[test]
fn lenient_and_legacy_accept_more() {
    let folder = tempfile::tempdir().unwrap();
    let first = file(
        &folder,
        "a.irl",
        "package a struct E : T { default int N = 1 }",
    );
    let second = file(&folder, "b.irl", "package b template T { int x }");
    let files = [first, second];
    baler(&args(&irl(&["check", "--lenient"], &files))).code(65);
    baler(&args(&irl(&["check", "--edition", "legacy"], &files))).code(65);
    let flags = ["check", "--lenient", "--edition", "legacy"];
    let text = output(&args(&irl(&flags, &files)));
    assert!(
        text.ends_with("2 files, 1 record type, 0 errors, 3 warnings\n"),
        "{text}"
    );
    output(&args(&irl(&["check"], &kiekers_files())));
}

#[test]
fn a_payload_is_its_values_in_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let order = |payload: &str| {
        format!(
            "package shop\nuse crm 'http://example.org/crm.ecore'\nstruct Order {{\n\tlong id\n\t\
             crm.Customer customer {payload}\n\tstring item\n}}\n"
        )
    };
    let (types, next) = (path("types"), path("next"));
    let crm = "package crm
        template Customer { string name Address address Customer boss }
        template Address { string city Customer owner }";
    for (folder, payload) in [(&types, "{ address }"), (&next, "{ address boss }")] {
        fs::create_dir(folder).unwrap();
        fs::write(format!("{folder}/shop.irl"), order(payload)).unwrap();
        fs::write(format!("{folder}/crm.irl"), crm).unwrap();
    }
    let legacy = |command: &[&str]| baler(&[&["irl"], command, &["--edition", "legacy"]].concat());
    let shown = legacy(&["dump", &types]).success();
    let shown = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    let fields = "shop.Order\n  long id\n  string customer.name\n  string customer.address.city\n  \
                  long customer.address.owner\n  long customer.boss\n  string item\n";
    assert!(shown.ends_with(fields), "{shown}");
    let checked = legacy(&["check", &types]).success();
    let checked = String::from_utf8(checked.get_output().stdout.clone()).unwrap();
    assert!(!checked.contains("unknown-class"), "{checked}");
    let changes = legacy(&["compat", &types, &next]).code(65);
    let changes = String::from_utf8(changes.get_output().stdout.clone()).unwrap();
    assert!(
        changes.contains("string customer.boss.name was added"),
        "{changes}"
    );
    let out = path("out");
    legacy(&["generate", "--language", "c", "--output", &out, &types]).success();
    let header = fs::read_to_string(format!("{out}/shop_Order.h")).unwrap();
    assert!(header.contains("customer_address_city;"), "{header}");

    fs::create_dir(path("log")).unwrap();
    fs::write(path("log/kieker.map"), "$0=shop.Order\n").unwrap();
    let records = "$0;5;1;Ada;Ulm;7;8;tea\n$0;6;2;Bob;Bonn;0;0;jam\n";
    fs::write(path("log/kieker-1.dat"), records).unwrap();
    let from = format!("kieker-log:{}", path("log"));
    let receive = |flags: &[&str]| {
        let args = ["receive", "--format", "json", "--from", &from];
        baler(&[&args[..], flags].concat())
    };
    let ulm = r#"fields["customer.address.city"] == "Ulm""#;
    let read = receive(&["--schemas", &types, "--where", ulm]).success();
    let read: Value = serde_json::from_slice(&read.get_output().stdout).unwrap();
    let ada = r#"{"id":1,"customer.name":"Ada","customer.address.city":"Ulm","customer.address.owner":7,"customer.boss":8,"item":"tea"}"#;
    assert_eq!(read["fields"].to_string(), ada);
    let flags = ["--fields", "customer.address.city,Order.customer.boss"];
    let read = receive(&[&["--schemas", &types, "--where", ulm], &flags[..]].concat()).success();
    let read: Value = serde_json::from_slice(&read.get_output().stdout).unwrap();
    let some = r#"{"customer.address.city":"Ulm","customer.boss":8}"#;
    assert_eq!(read["fields"].to_string(), some);
    let told = receive(&["--schemas", &types, "--where", "customer.name == 'Ada'"]).code(65);
    let told = String::from_utf8(told.get_output().stderr.clone()).unwrap();
    assert!(
        told.contains(r#"a name with points is fields["customer.name"]"#),
        "{told}"
    );

    // Without the file of its class the payload is read and shown, but has no bytes.
    let alone = format!("{types}/shop.irl");
    let shown = legacy(&["dump", &alone]).success();
    let shown = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    assert!(
        shown.contains("\n  crm.Customer { address } customer\n"),
        "{shown}"
    );
    let checked = legacy(&["check", &alone]).success();
    let checked = String::from_utf8(checked.get_output().stdout.clone()).unwrap();
    assert!(checked.contains("warning[unknown-class]"), "{checked}");
    let problem = "customer is a crm.Customer, a class that no file describes";
    let told = receive(&["--schemas", &alone]).code(78);
    let told = String::from_utf8(told.get_output().stderr.clone()).unwrap();
    assert!(told.contains(&format!("shop.irl:3:8: {problem}")), "{told}");
    let out = path("none");
    let told = legacy(&["generate", "--language", "c", "--output", &out, &alone]).code(65);
    let told = String::from_utf8(told.get_output().stderr.clone()).unwrap();
    assert!(
        told.contains("crm.Customer is a class that no file describes"),
        "{told}"
    );
    assert!(!folder.path().join("none").exists());
}

#[test]
fn files_that_cannot_be_read_have_the_documented_codes() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.irl").display().to_string();
    let binary = file(&folder, "binary.irl", b"package p\xff");
    let large = file(&folder, "large.irl", "é".repeat(1 << 20));
    for command in ["check", "dump"] {
        baler(&["irl", command]).code(2);
        let run = baler(&["irl", command, &missing]).code(69);
        let text = String::from_utf8(run.get_output().stderr.clone()).unwrap();
        assert!(
            text.contains("cannot open") && text.contains("missing.irl"),
            "{text}"
        );
        let run = baler(&["irl", command, &binary]).code(65);
        let text = String::from_utf8(run.get_output().stderr.clone()).unwrap();
        assert!(text.contains("is not UTF-8 from byte 9 on"), "{text}");
        let run = baler(&["irl", command, &large]).code(65);
        let run = run.get_output();
        let text = String::from_utf8_lossy(&run.stdout) + String::from_utf8_lossy(&run.stderr);
        assert!(text.contains("more than 1048576"), "{text}");
    }
}

#[test]
fn fmt_lays_files_out_once_and_keeps_what_it_cannot_read() {
    let folder = tempfile::tempdir().unwrap();
    let odd = file(&folder, "odd.irl", "package p\nevent E{int a // one\n}");
    let good = file(&folder, "good.irl", "package p\n\nevent E\n");
    let wrong = file(&folder, "wrong.irl", "package p event {");
    let run = baler(&["irl", "fmt", "--check", &odd, &good]).code(65);
    assert_eq!(run.get_output().stdout, format!("{odd}\n").as_bytes());
    assert_eq!(output(&["irl", "fmt", &odd, &good]), "");
    let text = fs::read_to_string(&odd).unwrap();
    assert_eq!(text, "package p\n\nevent E {\n\tint a // one\n}\n");
    assert_eq!(output(&["irl", "fmt", "--check", &odd, &good]), "");
    let run = baler(&["irl", "fmt", &wrong]).code(65);
    let text = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(
        text.contains("error[syntax]: { where a name should be"),
        "{text}"
    );
    assert_eq!(fs::read_to_string(&wrong).unwrap(), "package p event {");
    let missing = folder.path().join("missing.irl").display().to_string();
    baler(&["irl", "fmt", &missing]).code(69);
    let large = file(&folder, "large.irl", " ".repeat((1 << 20) + 10));
    baler(&["irl", "fmt", &large]).code(65);
}

#[test]
fn an_output_that_is_full_has_its_code() {
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let args = irl(&["dump", "--format", "json"], &kiekers_files());
    let status = command().args(args).stdout(full).status().unwrap();
    assert_eq!(status.code(), Some(74));
}
