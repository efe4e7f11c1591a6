//! Finds the built commit: results contain it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Passes the commit to the compiler as `BALER_COMMIT`, with `-dirty` after it if files differ from
/// it. A build without git may set the variable; otherwise the commit is unknown.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=BALER_COMMIT");
    if std::env::var_os("BALER_COMMIT").is_some() {
        return;
    }
    // The folder of this build. Builds that share a target folder may reuse a script from
    // elsewhere.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let root = package.and_then(|package| package.join("../..").canonicalize().ok());
    let Some(root) = root.filter(|root| is_checkout(root)) else {
        return;
    };
    let describe = ["describe", "--always", "--abbrev=12", "--dirty"];
    if let Some(commit) = git(&root, &describe) {
        println!("cargo::rustc-env=BALER_COMMIT={commit}");
    }
    // The log grows with every commit and checkout. If there is none, `HEAD` changes with the
    // branch.
    for file in ["logs/HEAD", "HEAD"] {
        let file = git(&root, &["rev-parse", "--git-path", file]);
        // A missing file would make this script run at every build.
        if let Some(file) = file.map(|it| root.join(it)).filter(|it| it.is_file()) {
            watch(&file);
        }
    }
    // A change there makes a clean tree dirty; tests and documents are not in the program.
    watch(&root.join("Cargo.lock"));
    let manifests = git(&root, &["ls-files", "*Cargo.toml"]);
    let sources = manifests
        .iter()
        .flat_map(|it| it.lines())
        .map(|it| root.join(it).with_file_name("src"));
    sources.filter(|it| it.is_dir()).for_each(|it| watch(&it));
}

/// Whether this folder is the root of a work tree. The sources may lie, without their history, in
/// another work tree.
fn is_checkout(root: &Path) -> bool {
    let top = git(root, &["rev-parse", "--show-toplevel"]).map(PathBuf::from);
    top.and_then(|top| top.canonicalize().ok()).as_deref() == Some(root)
}

fn watch(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}

/// The output of git, if it is installed and succeeds.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    git.args(arguments)
        .current_dir(folder)
        .env("GIT_OPTIONAL_LOCKS", "0");
    let run = git.output().ok()?;
    let text = String::from_utf8(run.stdout).ok()?;
    let text = text.trim();
    (run.status.success() && !text.is_empty()).then(|| text.to_owned())
}
