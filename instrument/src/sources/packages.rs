//! The packages below a folder and their crates, as cargo sees them.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

use super::problem::Problem;

/// The crates that a probe itself links. A probe in one of them would call itself.
const OWN: [&str; 5] = [
    "baler",
    "baler-common",
    "baler-instrument",
    "baler-macros",
    "baler-monitoring",
];

/// The root of a crate.
#[derive(Debug)]
pub(crate) struct Root {
    /// The name of the crate in paths.
    pub(crate) name: String,
    /// Its first file.
    pub(crate) file: PathBuf,
    /// Why none of its functions can have a probe.
    pub(crate) reason: Option<&'static str>,
}

/// The files of a folder.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// All files of Rust, sorted.
    pub(crate) sources: Vec<PathBuf>,
    /// All files Cargo.toml, outer ones first.
    pub(crate) manifests: Vec<PathBuf>,
}

impl Files {
    /// Finds all files of a folder, except in hidden folders, in those that cargo builds into, and
    /// behind links.
    pub(crate) fn find(folder: &Path, problems: &mut Vec<Problem>) -> Self {
        let mut files = Self::default();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder).and_then(Iterator::collect);
            let mut entries: Vec<fs::DirEntry> = match entries {
                Ok(entries) => entries,
                Err(error) => {
                    problems.push(Problem::io(&folder, &error));
                    continue;
                }
            };
            entries.sort_by_key(fs::DirEntry::file_name);
            let is_package = entries.iter().any(|it| it.file_name() == "Cargo.toml");
            for entry in entries {
                let path = entry.path();
                let name = entry.file_name();
                let kind = entry.file_type();
                if kind.as_ref().is_ok_and(fs::FileType::is_dir) {
                    let is_hidden = name.as_encoded_bytes().starts_with(b".");
                    let is_built =
                        (is_package && name == "target") || path.join("CACHEDIR.TAG").exists();
                    if !is_hidden && !is_built {
                        folders.push(path);
                    }
                } else if kind.is_ok_and(|it| it.is_file()) {
                    if name == "Cargo.toml" {
                        files.manifests.push(path);
                    } else if path.extension() == Some(OsStr::new("rs")) {
                        files.sources.push(path);
                    }
                }
            }
        }
        files.sources.sort();
        files.manifests.sort_by_key(|it| it.components().count());
        files
    }

    /// Returns the roots of all crates, and the manifests of all packages.
    pub(crate) fn roots(&self, problems: &mut Vec<Problem>) -> (Vec<Root>, Vec<PathBuf>) {
        let mut roots = Vec::new();
        let mut packages: Vec<PathBuf> = Vec::new();
        let mut known = HashSet::new();
        for manifest in &self.manifests {
            if !known.insert(manifest.clone()) {
                continue;
            }
            let metadata = match metadata(manifest) {
                Ok(metadata) => metadata,
                Err(message) => {
                    problems.push(Problem::at(manifest, 1, message));
                    continue;
                }
            };
            for package in items(&metadata, "packages") {
                let Some(path) = text(package, "manifest_path").map(PathBuf::from) else {
                    continue;
                };
                // A member of the workspace may lie elsewhere, and another manifest may have named it.
                if !self.manifests.contains(&path) || packages.contains(&path) {
                    continue;
                }
                let targets = items(package, "targets");
                roots.extend(targets.filter_map(|target| root(package, target)));
                known.insert(path.clone());
                packages.push(path);
            }
        }
        (roots, packages)
    }
}

/// Runs `cargo metadata`, which needs neither a network nor a lock file if no dependency is asked for.
fn metadata(manifest: &Path) -> Result<Value, String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .arg("--manifest-path")
        .arg(manifest)
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(errors.trim().trim_start_matches("error: ").to_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

fn root(package: &Value, target: &Value) -> Option<Root> {
    let kinds: Vec<_> = items(target, "kind").filter_map(Value::as_str).collect();
    let reason = match kinds.as_slice() {
        _ if OWN.contains(&text(package, "name")?) => Some("a crate of Baler itself"),
        _ if text(package, "edition") == Some("2015") => Some("a crate of edition 2015"),
        ["proc-macro"] => Some("in a procedural macro, which the compiler runs"),
        ["custom-build"] => Some("in a build script"),
        ["test"] => Some("in an integration test"),
        ["bench"] => Some("in a benchmark"),
        ["example"] => Some("in an example"),
        _ => None,
    };
    Some(Root {
        name: text(target, "name")?.replace('-', "_"),
        file: PathBuf::from(text(target, "src_path")?),
        reason,
    })
}

fn items<'v>(of: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    of.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn text<'v>(of: &'v Value, name: &str) -> Option<&'v str> {
    of.get(name).and_then(Value::as_str)
}
