//! The pages in `docs/papers`: every table of Baler's own figures is made from a kept result.
//!
//! A table stands between `<!-- table: FILE KIND COLUMNS -->` and `<!-- end of table -->`. FILE is in
//! `benches/results`. `UPDATE_GOLDEN=1` writes the tables anew.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;

const OPENING: &str = "<!-- table: ";
const CLOSING: &str = "<!-- end of table -->";

/// The fewest processes that a row is measured with.
const PROCESSES: u64 = 10;

#[test]
fn tables_of_the_pages_are_those_of_the_kept_results() {
    let pages = root().join("docs/papers");
    let mut tables = 0;
    for entry in fs::read_dir(pages).unwrap() {
        let path = entry.unwrap().path();
        let page = fs::read_to_string(&path).unwrap();
        let fresh = with_fresh_tables(&page);
        tables += fresh.matches(OPENING).count();
        if env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&path, &fresh).unwrap();
        } else {
            assert!(page == fresh, "{}: UPDATE_GOLDEN=1", path.display());
        }
    }
    assert!(tables > 0, "no page has a table");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn with_fresh_tables(page: &str) -> String {
    let mut parts = page.split(OPENING);
    let mut fresh = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (words, rest) = part.split_once(" -->").expect("a marker ends with -->");
        let (_, behind) = rest.split_once(CLOSING).expect(CLOSING);
        let table = table(words);
        write!(fresh, "{OPENING}{words} -->\n\n{table}\n{CLOSING}{behind}").unwrap();
    }
    fresh
}

fn table(words: &str) -> String {
    let words: Vec<&str> = words.split(' ').collect();
    let [file, kind, columns] = *words else {
        panic!("a marker has file, kind and columns: {words:?}");
    };
    let path = root().join("benches/results").join(file);
    let result: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(result["optimised"], true, "{file}");
    let columns: Vec<&str> = columns.split(',').collect();
    let mut table = match kind {
        "statistics" => statistics(&result["rows"], &columns),
        "growth" => growth(&result["rows"], &columns),
        "verdicts" => verdicts(&result["rows"], &columns),
        "sampling-errors" => sampling_errors(&result["rows"], &columns),
        "sampling-balances" => sampling_balances(&result["rows"], &columns),
        "hybrid" => hybrid(&result["rows"], &columns),
        "chunk-sizes" => chunk_sizes(&result["cells"], &columns),
        "detection-duet" => detection(&result["rows"], "duet", &columns),
        "detection-separate" => detection(&result["rows"], "separate", &columns),
        "noise" => noise(&result["rows"], &columns),
        _ => panic!("unknown kind of table: {kind}"),
    };
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let (command, commit) = (word(&result["command"]), word(&result["commit"]));
    let machine = &result["machine"];
    let (cpu, cores) = (word(&machine["cpu"]), &machine["cores"]);
    writeln!(table, "\n`{command}` at {commit}; {cpu}, {cores} cores.").unwrap();
    table
}

/// The statistics of the first paper's tables, a column for each variant: depth 10, one thread.
fn statistics(rows: &Value, variants: &[&str]) -> String {
    let cells: Vec<&Value> = variants.iter().map(|it| row(rows, it, 10)).collect();
    let mut table = heading("ns a call", variants);
    for (name, figure) in [
        ("mean", "mean_ns_per_call"),
        ("± 95 %", "mean_margin_ns"),
        ("Q1", "q1_ns_per_call"),
        ("median", "median_ns_per_call"),
        ("Q3", "q3_ns_per_call"),
    ] {
        line(&mut table, name, cells.iter().map(|it| short(&it[figure])));
    }
    table
}

/// The mean of each variant at each depth, in microseconds for a call from outside.
fn growth(rows: &Value, variants: &[&str]) -> String {
    let depths: BTreeSet<u64> = rows.as_array().unwrap().iter().map(depth_of).collect();
    let mut table = heading("depth", variants);
    for depth in depths {
        let calls = u32::try_from(depth).unwrap();
        let figures = variants.iter().map(|variant| {
            let row = row(rows, variant, depth);
            let of = |figure: &str| row[figure].as_f64().unwrap() * f64::from(calls) / 1e3;
            format!(
                "{:.3} ± {:.3}",
                of("mean_ns_per_call"),
                of("mean_margin_ns")
            )
        });
        line(&mut table, &depth.to_string(), figures);
    }
    table
}

/// CPU and network for each chunk size, as the second table of the paper on chunks; a pair of columns
/// for each container, and one message a record above them.
fn chunk_sizes(cells: &Value, containers: &[&str]) -> String {
    let cells = cells.as_array().unwrap();
    let names = containers
        .iter()
        .flat_map(|it| [format!("{it}: CPU s/s"), format!("{it}: net KiB/s")]);
    let names: Vec<String> = names.collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut table = heading("chunk size", &names);
    let sizes: BTreeSet<u64> = cells
        .iter()
        .filter_map(|it| it["chunk_records"].as_u64())
        .collect();
    let find = |way: &str, size: Option<u64>| {
        let mut found = cells.iter();
        let found = found.find(|it| it["way"] == way && it["chunk_records"].as_u64() == size);
        let found = found.unwrap_or_else(|| panic!("no cell of {way} with {size:?}"));
        measured(found);
        [
            interval(&found["writer_cpu_seconds_per_second"], 1.0, 4),
            interval(&found["wire_bytes_per_second"], 1.0 / 1_024.0, 1),
        ]
    };
    for way in ["awaiting", "pipelined"] {
        let figures = find(way, None);
        let repeated = containers.iter().flat_map(|_| figures.clone());
        line(
            &mut table,
            &format!("one message a record, {way}"),
            repeated,
        );
    }
    for size in sizes {
        let ways = containers.iter().flat_map(|it| find(it, Some(size)));
        line(&mut table, &size.to_string(), ways);
    }
    table
}

/// The 95 % intervals of these figures for each number of patterns and probes.
fn verdicts(rows: &Value, figures: &[&str]) -> String {
    let names: Vec<String> = figures.iter().map(|it| format!("{it}, µs")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut table = heading("patterns × probes", &names);
    for row in rows.as_array().unwrap() {
        measured(row);
        let name = format!("{} × {}", row["patterns"], row["probes"]);
        let figures = figures
            .iter()
            .map(|it| interval(&row[format!("{it}_us")], 1.0, 1));
        line(&mut table, &name, figures);
    }
    table
}

/// The errors of each estimator's times of these methods, by their milliseconds.
fn sampling_errors(rows: &Value, methods: &[&str]) -> String {
    let names: Vec<String> = methods.iter().map(|it| format!("{it} ms, %")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut table = heading("agent, estimator", &names);
    let known = methods.iter().map(|it| format!("void Demo.method{it}ms()"));
    let known: Vec<String> = known.collect();
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for row in rows.as_array().unwrap() {
        for error in row["errors"].as_array().unwrap() {
            let Some(column) = known.iter().position(|it| error["method"] == **it) else {
                continue;
            };
            let name = format!(
                "{}, {}",
                sampling_agent(row),
                error["estimator"].as_str().unwrap()
            );
            let index = lines.iter().position(|(line, _)| *line == name);
            let index = index.unwrap_or_else(|| {
                lines.push((name, vec![String::new(); known.len()]));
                lines.len() - 1
            });
            lines[index].1[column] = margin(&error["error_percent"], 2);
        }
    }
    for (name, figures) in lines {
        line(&mut table, &name, figures.into_iter());
    }
    table
}

/// These parts of the wall time of each demo and agent.
fn sampling_balances(rows: &Value, parts: &[&str]) -> String {
    let mut table = heading("ms", parts);
    for row in rows.as_array().unwrap() {
        let name = format!("{}, {}", row["demo"].as_str().unwrap(), sampling_agent(row));
        let figures = parts.iter().map(|it| margin(&row["balance_ms"][it], 1));
        line(&mut table, &name, figures);
    }
    table
}

/// These figures of hybrid monitoring at each load.
fn hybrid(rows: &Value, figures: &[&str]) -> String {
    let mut table = heading("load", figures);
    for row in rows.as_array().unwrap() {
        // At a tenth of the load, a hot spot may not be found.
        let figure = |it: &&str| {
            row.pointer(&format!("/{it}"))
                .map_or_else(String::new, short)
        };
        let figures = figures.iter().map(figure);
        line(&mut table, &row["load"].to_string(), figures);
    }
    table
}

/// The calls from which on each kind of probe finds these slowdowns, for each function.
fn detection(rows: &Value, design: &str, slowdowns: &[&str]) -> String {
    let names: Vec<String> = slowdowns
        .iter()
        .map(|it| format!("{it} % slower"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut table = heading("kind, function", &names);
    for base in unchanged(rows, design) {
        let figures = slowdowns.iter().map(|slowdown| {
            let mut all = rows.as_array().unwrap().iter();
            let row = all.find(|it| {
                ["kind", "function_us", "design"]
                    .iter()
                    .all(|name| it[name] == base[name])
                    && it["slowdown_percent"].as_u64() == slowdown.parse().ok()
            });
            let row = row.unwrap_or_else(|| panic!("no row of {base} with {slowdown} %"));
            measured(row);
            let calls = |name: &str| match row[name].as_f64() {
                Some(calls) => format!("{calls:.0}"),
                None => format!(">{:.0}", row["most_calls"].as_f64().unwrap()),
            };
            match row["calls"] {
                Value::Null => calls("calls"),
                _ => format!(
                    "{} [{}; {}]",
                    calls("calls"),
                    calls("calls_low"),
                    calls("calls_high")
                ),
            }
        });
        line(&mut table, &kind_and_function(base), figures);
    }
    table
}

/// The noise of the machine in each design: of batches, and of runs.
fn noise(rows: &Value, designs: &[&str]) -> String {
    let names = designs
        .iter()
        .flat_map(|it| [format!("{it}: batches, %"), format!("{it}: runs, %")]);
    let names: Vec<String> = names.collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut table = heading("kind, function", &names);
    let of_designs: Vec<Vec<&Value>> = designs.iter().map(|it| unchanged(rows, it)).collect();
    for (index, first) in of_designs[0].iter().enumerate() {
        let figures = of_designs.iter().flat_map(|rows| {
            let row = rows[index];
            assert_eq!(kind_and_function(row), kind_and_function(first));
            ["noise_percent", "run_noise_percent"].map(|name| short(&row[name]))
        });
        line(&mut table, &kind_and_function(first), figures);
    }
    table
}

/// The rows of a design without a slowdown.
fn unchanged<'a>(rows: &'a Value, design: &str) -> Vec<&'a Value> {
    let rows = rows.as_array().unwrap().iter();
    let rows = rows.filter(|it| it["design"] == design && it["slowdown_percent"] == 0);
    rows.inspect(|row| measured(row)).collect()
}

fn kind_and_function(row: &Value) -> String {
    format!(
        "{}, {} µs",
        row["kind"].as_str().unwrap(),
        row["function_us"]
    )
}

fn sampling_agent(row: &Value) -> String {
    measured(row);
    let agent = row["agent"].as_str().unwrap();
    match row["interval_ms"].as_u64() {
        Some(ms) => format!("{agent} {ms} ms"),
        None => agent.to_owned(),
    }
}

fn row<'a>(rows: &'a Value, variant: &str, depth: u64) -> &'a Value {
    let mut rows = rows.as_array().unwrap().iter();
    let row =
        rows.find(|it| it["variant"] == variant && depth_of(it) == depth && it["threads"] == 1);
    let row = row.unwrap_or_else(|| panic!("no row of {variant} at depth {depth}"));
    measured(row);
    row
}

fn measured(row: &Value) {
    assert_eq!(row["failure"], Value::Null);
    assert!(row["repetitions"].as_u64() >= Some(PROCESSES), "{row}");
}

fn depth_of(row: &Value) -> u64 {
    row["depth"].as_u64().unwrap()
}

fn heading(first: &str, columns: &[&str]) -> String {
    let mut table = String::new();
    line(&mut table, first, columns.iter().map(|it| (*it).to_owned()));
    table + "|---|" + &"---:|".repeat(columns.len()) + "\n"
}

fn line(table: &mut String, name: &str, figures: impl Iterator<Item = String>) {
    let figures: Vec<String> = figures.collect();
    writeln!(table, "| {name} | {} |", figures.join(" | ")).unwrap();
}

fn short(number: &Value) -> String {
    let number = number.as_f64().unwrap();
    let decimals = if number < 100.0 { 2 } else { 0 };
    format!("{number:.decimals$}")
}

fn interval(value: &Value, factor: f64, decimals: usize) -> String {
    let of = |name: &str| value[name].as_f64().unwrap() * factor;
    let (low, high) = (of("low"), of("high"));
    let decimals = if high < 1_000.0 { decimals } else { 0 };
    format!("[{low:.decimals$}; {high:.decimals$}]")
}

fn margin(value: &Value, decimals: usize) -> String {
    let of = |name: &str| value[name].as_f64().unwrap();
    let (mean, margin) = (of("mean"), of("high") - of("mean"));
    format!("{mean:.decimals$} ± {margin:.decimals$}")
}
