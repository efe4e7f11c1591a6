//! The crates that an application links with the probes: the list in `golden/dependencies.txt`.
//!
//! Every monitored application pays for each further name, so a review must approve it.
//! `UPDATE_GOLDEN=1 cargo budget` rewrites the list.

#![cfg(test)]

use std::collections::BTreeSet;
use std::process::Command;
use std::{env, fs};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/dependencies.txt");

/// The names of all crates in the normal tree with default features. The platform is always the
/// same, so that the list does not depend on the machine.
fn linked() -> BTreeSet<String> {
    let tree = Command::new(env!("CARGO"))
        .args([
            "tree",
            "-p",
            "baler-monitoring",
            "-e",
            "normal",
            "--prefix",
            "none",
        ])
        .args(["--format", "{p}", "--target", "x86_64-unknown-linux-gnu"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        tree.status.success(),
        "{}",
        String::from_utf8_lossy(&tree.stderr)
    );
    let told = String::from_utf8(tree.stdout).unwrap();
    told.lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_probes_link_only_what_the_list_names() {
    let linked = linked();
    assert!(
        linked.contains("baler-monitoring"),
        "the tree has no root: {linked:?}"
    );
    if env::var_os("UPDATE_GOLDEN").is_some() {
        let mut text = linked.into_iter().collect::<Vec<_>>().join("\n");
        text.push('\n');
        fs::write(GOLDEN, text).unwrap();
        return;
    }
    let golden = fs::read_to_string(GOLDEN).unwrap();
    let listed: BTreeSet<_> = golden.lines().map(str::to_owned).collect();
    let more: Vec<_> = linked.difference(&listed).collect();
    let less: Vec<_> = listed.difference(&linked).collect();
    assert!(
        more.is_empty() && less.is_empty(),
        "newly linked: {more:?}, no longer linked: {less:?}; \
         if this is meant, run UPDATE_GOLDEN=1 cargo budget"
    );
}
