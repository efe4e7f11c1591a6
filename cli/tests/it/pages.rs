//! What documents refer to is there: files and headings behind links, the checks of invariants.

use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use crate::support::workspace;

/// Returns the paths and texts of the tracked files with these extensions, also of new ones.
fn files(extensions: &[&str]) -> Vec<(PathBuf, String)> {
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others"])
        .arg("--exclude-standard")
        .current_dir(workspace(""))
        .output()
        .unwrap();
    assert!(listing.status.success(), "{listing:?}");
    let names = String::from_utf8(listing.stdout).unwrap();
    let paths = names.split_terminator('\0').map(PathBuf::from);
    let chosen = paths.filter(|path| {
        let extension = path.extension().and_then(|it| it.to_str());
        extension.is_some_and(|it| extensions.contains(&it))
    });
    // A file may be deleted and not yet committed.
    let read = |path: PathBuf| {
        let text = fs::read_to_string(workspace("").join(&path)).ok()?;
        Some((path, text))
    };
    chosen.filter_map(read).collect()
}

/// Returns the numbered lines outside of blocks of code.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_block = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        in_block ^= fence;
        !in_block && !fence
    })
}

/// Returns the anchor that GitHub gives to a heading.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading.chars();
    let kept = kept.filter(|it| it.is_alphanumeric() || ['-', '_', ' '].contains(it));
    kept.collect::<String>().replace(' ', "-")
}

/// Returns the targets of links and images in a line that are in this repository.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let links = line.split("](").skip(1).filter_map(|it| it.split_once(')'));
    let images = line.split("src=\"").skip(1);
    let images = images.filter_map(|it| it.split_once('"'));
    let targets = links.chain(images).map(|(target, _)| target);
    targets.filter(|target| {
        let is_page = target.contains(['/', '.', '#']);
        // `::` is in links of rustdoc, which checks them.
        is_page
            && !["::", "://", "mailto:"]
                .iter()
                .any(|it| target.contains(it))
    })
}

/// Returns the path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => assert!(normal.pop(), "{}", path.display()),
            other => normal.push(other),
        }
    }
    normal
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let pages = files(&["md"]);
    let anchors: HashMap<&Path, Vec<String>> = pages
        .iter()
        .map(|(path, text)| {
            let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
            (&**path, headings.map(|(_, line)| anchor(line)).collect())
        })
        .collect();
    let (mut checked, mut broken) = (0, Vec::new());
    for (path, text) in &pages {
        for (number, line) in prose(text) {
            for target in targets(line) {
                let (file, heading) = target.split_once('#').unwrap_or((target, ""));
                let file = match file {
                    "" => path.clone(),
                    _ => normal(&path.with_file_name("").join(file)),
                };
                let is_there = match anchors.get(&*file) {
                    Some(anchors) => heading.is_empty() || anchors.iter().any(|it| it == heading),
                    None => workspace("").join(&file).exists(),
                };
                checked += 1;
                if !is_there {
                    broken.push(format!("{}:{number}: {target}", path.display()));
                }
            }
        }
    }
    assert!(checked > 200, "{checked} links");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_check_of_an_invariant_is_there() {
    let code = files(&["rs", "py"]);
    let all = files(&["rs", "py", "toml", "txt"]);
    let mut checked = 0;
    for page in ["ARCHITECTURE.md", "docs/invariants.md"] {
        let text = fs::read_to_string(workspace(page)).unwrap();
        let tables = text.split("| what holds | its check |").skip(1);
        let rows = tables.flat_map(|table| table.lines().skip(1).take_while(|it| !it.is_empty()));
        for row in rows.filter(|row| !row.starts_with("|---")) {
            let (_, check) = row.trim_end_matches(" |").rsplit_once(" | ").unwrap();
            // Words in code alone are no checks: names of crates, of a lint, of a command.
            let names = check.split('`').skip(1).step_by(2);
            let names: Vec<_> = names.filter(|it| it.contains(['/', '.', '_'])).collect();
            assert!(!names.is_empty(), "{page} names no check: {row}");
            for name in names {
                let name = name.split(' ').next().unwrap();
                let is_file =
                    workspace(name).exists() || all.iter().any(|(path, _)| path.ends_with(name));
                let is_beginning = name.ends_with('…');
                let test = name.trim_end_matches('…');
                let has_test = |text: &str| {
                    ["fn ", "def "].iter().any(|keyword| {
                        let beginning = format!("{keyword}{test}");
                        let mut ends = text.split(&beginning).skip(1);
                        ends.any(|it| is_beginning || it.starts_with(['(', '<']))
                    })
                };
                let is_test = || code.iter().any(|(_, text)| has_test(text));
                assert!(is_file || is_test(), "{page}: there is no {name}");
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "{checked} checks");
}
