//! Limits of instructions a call. They apply to optimised programs, so one is built here.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// The example `probe_cost`, optimised like a release.
fn program() -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["build", "--release", "--example", "probe_cost"])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let built = String::from_utf8(output.stdout).unwrap();
    let messages = built
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let program = messages
        .filter(|message: &Value| message["target"]["name"] == "probe_cost")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    program.expect(&told)
}

/// Returns the variants' instructions a call, for all existing variants.
fn instructions(variants: &[&str]) -> Vec<(String, f64)> {
    let program = program();
    let list = Command::new(&program).arg("--list").output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    let there: Vec<_> = list
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|name| variants.contains(name))
        .collect();
    let output = Command::new(&program)
        .args(["--quick", "--instructions", "--format", "json", "--only"])
        .arg(there.join(","))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).expect(&told);
    rows.iter()
        .map(|row| {
            let count = row["instructions_per_call"].as_f64();
            let name = row["variant"].as_str().unwrap().to_owned();
            (name, count.unwrap_or_else(|| panic!("{row:#}")))
        })
        .collect()
}

fn check(bounds: &[(&str, f64)]) {
    let names: Vec<_> = bounds.iter().map(|(name, _)| *name).collect();
    let found = instructions(&names);
    assert!(!found.is_empty());
    let above: Vec<_> = found
        .iter()
        .filter(|(name, count)| {
            let bound = bounds.iter().find(|(bounded, _)| bounded == name);
            bound.is_none_or(|(_, bound)| count > bound)
        })
        .collect();
    assert!(
        above.is_empty(),
        "{above:?} of {found:?}, bounds {bounds:?}"
    );
}

/// If these grow, the application around the probe grows, and all limits below lose their meaning.
#[test]
#[cfg_attr(not(valgrind), ignore = "valgrind is not installed")]
fn the_application_and_two_clock_reads_stay_small() {
    check(&[("none", 12.0), ("clock", 26.0)]);
}

/// With the recursion itself, as in the row of `none` (10.3), and if there is one, with the end of
/// a trace at every tenth call. An operation takes seven instructions to check whether its block
/// was sealed meanwhile: otherwise such a call would be in no account.
#[test]
#[cfg_attr(not(valgrind), ignore = "valgrind is not installed")]
fn probes_stay_within_their_bounds() {
    check(&[
        ("deactivated", 25.0),
        ("deactivated-pattern", 25.0),
        ("operation", 101.0),
        ("duration", 65.0),
        ("aggregated", 60.0),
        ("aggregated-histogram", 95.0),
    ]);
}
