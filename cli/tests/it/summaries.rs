//! What commands show on a terminal of 80 columns: their summaries and tables, as a person has
//! read them.

use std::fs;
use std::path::Path;

use crate::support::{command, golden, real_log, workspace};

/// Figures of two columns that differ from run to run.
const VARYING: [&str; 6] = [
    "bytes",
    "bytes per record",
    "chunks per second",
    "forwarded bytes",
    "records per second",
    "seconds",
];

/// Runs a command in the folder. Returns its line and all that it shows, without what differs from
/// run to run.
fn shown(folder: &Path, args: &[&str]) -> String {
    let mut command = command();
    command.args(args).current_dir(folder).env("COLUMNS", "80");
    // Both outputs, in their order.
    let output = folder.join("output");
    let file = fs::File::create(&output).unwrap();
    command.stdout(file.try_clone().unwrap()).stderr(file);
    let status = command.status().unwrap();
    let text = fs::read_to_string(output).unwrap();
    let mut all = format!("$ baler {}\n", named(&args.join(" "), folder));
    for line in text.lines() {
        let line = steady(&named(line, folder));
        // Messages and paths stay whole.
        let is_whole = !line.starts_with(' ') || line.contains('/') || args.contains(&"irl");
        assert!(line.chars().count() <= 80 || is_whole, "{line}");
        all.push_str(&format!("{line}\n"));
    }
    match status.code() {
        Some(0) => {}
        code => all.push_str(&format!("exit code {}\n", code.unwrap())),
    }
    all + "\n"
}

/// Leaves the folder of the workspace and that of the test out of paths.
fn named(text: &str, folder: &Path) -> String {
    let folders = [workspace(""), folder.join("")];
    let paths = folders.iter().map(|it| it.display().to_string());
    paths.fold(text.to_owned(), |text, path| text.replace(&path, ""))
}

fn steady(line: &str) -> String {
    let figure = line.trim_start().split_once("  ");
    if let Some((_, value)) = figure.filter(|(name, _)| VARYING.contains(name)) {
        return line.replace(value.trim_start(), "…");
    }
    // The same figures as parts of another one.
    let is_varying = ["KiB forwarded", " seconds", " per second"];
    if !is_varying.iter().any(|end| line.ends_with(end)) {
        return line.to_owned();
    }
    let figure = |letter: char| letter.is_ascii_digit() || ",.".contains(letter);
    let rest = line.trim_start().trim_start_matches(figure);
    let indent = line.len() - line.trim_start().len();
    format!("{:indent$}…{rest}", "")
}

#[test]
fn summaries_and_tables_are_the_ones_that_were_read() {
    let folder = tempfile::tempdir().unwrap();
    let chunk = |name: &str| {
        let path = workspace("common/tests/golden/native").join(name);
        path.to_str().unwrap().to_owned()
    };
    let (calls, types, log) = (
        chunk("kieker-calls.chunk"),
        chunk("two-types.chunk"),
        real_log(),
    );
    let events = workspace("analysis/tests/data/kieker/trace-events-2014");
    let events = format!("kieker-log:{}", events.display());
    for (name, text) in FILES {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let runs = RUNS.lines().filter(|line| !line.is_empty()).map(|line| {
        let words = line.split(' ').map(|word| match word {
            "CALLS" => &calls,
            "EVENTS" => &events,
            "LOG" => &log,
            "TYPES" => &types,
            word => word,
        });
        shown(folder.path(), &words.collect::<Vec<_>>())
    });
    golden("summaries.txt", &runs.collect::<String>());
}

/// The runs, one a line. Each may use the output of those before it.
const RUNS: &str = "
generate --to file:calls --records 2500 --wait-time 1h
generate --to file:spooled --spool spool --records 2500 --wait-time 1h
validate --from file:calls --to file:copy
relay --from file:calls --to file:copy
receive --from file:copy --count 3
receive --from file:copy --format none
receive --from file:copy --type None
receive --from file:copy --format none --where hostname>eoi
tap file:copy --from-start --count 2
replay --check file:copy
replay file:copy --to null:
send --from file:copy --to null:
send --from file:copy --to null: --where ess>1
send --from LOG --to file:log
receive --from file:log --format none --operations
analyze --from file:log
analyze --from EVENTS
analyze --from file:copy
inspect CALLS --records 2
inspect TYPES --records 2 --strings 3
inspect bad
receive --from file:calls --format none --quarantine quarantine --decoded-limit 1KiB
replay quarantine --check
verify --to file: --records 500
send --from jsonl:nothing --to null:
send --from jsonl:wrong.jsonl --to file:seen
irl from-rust file:seen
irl from-rust CALLS --output types
irl dump old.irl
irl check old.irl
irl check wrong.irl
irl compat old.irl new.irl
irl generate old.irl --language python --output python
instrument list --path shop
instrument insert --path shop --exclude shop::main --dry-run
instrument insert --path shop --exclude shop::main
instrument check --path shop
instrument remove --path shop
overhead --list
";

/// The files of the folder.
const FILES: [(&str, &str); 9] = [
    ("bad/one.chunk", "no chunk"),
    ("nothing", ""),
    (
        "new.irl",
        "package shop\n\nevent Sale {\n\tlong price = 0\n\tstring till\n}\n",
    ),
    (
        "old.irl",
        "package shop\n\nevent Sale {\n\tint price = 0\n\tstring till\n}\n",
    ),
    (
        "shop/Cargo.toml",
        "[package]\nname = \"shop\"\nedition = \"2024\"\n\n[workspace]\n",
    ),
    (
        "shop/src/main.rs",
        "mod till;\n\nfn main() {\n    till::sell(1);\n}\n\nconst fn zero() -> i32 {\n    0\n}\n",
    ),
    (
        "shop/src/till.rs",
        "pub fn sell(price: u32) -> u32 {\n    price\n}\n",
    ),
    (
        "wrong.jsonl",
        "{\"seen\": 1, \"name\": \"a\"}\nno object\n{\"seen\": 2, \"name\": \"b\"}\n",
    ),
    (
        "wrong.irl",
        "package a\n\nevent E : T {\n\tint a = 'x'\n}\n",
    ),
];
