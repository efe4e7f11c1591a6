//! Rules about files that no other tool checks.

use std::fs;
use std::path::Path;
use std::process::Command;

fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Returns the settings and entries of a `clippy.toml`, one a line: no comments, no brackets around
/// lists.
fn entries(text: &str) -> Vec<&str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .filter(|line| *line != "]" && !line.ends_with('['))
        .collect()
}

#[test]
fn clippy_rules_of_common_repeat_those_of_the_root() {
    let root = fs::read_to_string(workspace().join("clippy.toml")).unwrap();
    let common = fs::read_to_string(workspace().join("common/clippy.toml")).unwrap();
    let wanted = entries(&root);
    assert!(
        wanted.len() > 2,
        "too few entries found in clippy.toml: {wanted:?}"
    );
    let present = entries(&common);
    let missing: Vec<_> = wanted
        .iter()
        .filter(|entry| !present.contains(entry))
        .collect();
    assert!(missing.is_empty(), "common/clippy.toml lacks {missing:#?}");
}

#[test]
fn tracked_text_refers_to_nothing_outside_the_repository() {
    // Written in two pieces, so that this file does not find itself.
    let outside = concat!("..", "/shared");
    let listing = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(workspace())
        .output()
        .unwrap();
    assert!(
        listing.status.success(),
        "{}",
        String::from_utf8_lossy(&listing.stderr)
    );
    let names = String::from_utf8(listing.stdout).unwrap();
    let mut found = Vec::new();
    let mut read = 0;
    for name in names.split_terminator('\0') {
        // A file deleted but not yet committed, or one that is not text, has nothing to say.
        let Ok(text) = fs::read_to_string(workspace().join(name)) else {
            continue;
        };
        read += 1;
        for (number, line) in text.lines().enumerate() {
            if line.contains(outside) {
                found.push(format!("{name}:{}: {line}", number + 1));
            }
        }
    }
    assert!(read > 10, "only {read} files were read");
    assert!(
        found.is_empty(),
        "references out of the repository:\n{}",
        found.join("\n")
    );
}
