//! Trees of packages on disk.

use std::fs;
use std::path::Path;

use baler_instrument::{Attribute, Change, Function, Tree};
use tempfile::TempDir;

/// A package of edition 2024 whose library has the name `shop`.
pub(crate) const MANIFEST: &str = "[package]\nname = \"shop\"\nedition = \"2024\"\n";

/// Writes files into a new folder; a manifest is added if there is none.
pub(crate) fn package(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    if !files.iter().any(|(name, _)| *name == "Cargo.toml") {
        write(folder.path(), "Cargo.toml", MANIFEST);
    }
    for (name, text) in files {
        write(folder.path(), name, text);
    }
    folder
}

pub(crate) fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

pub(crate) fn read(folder: &TempDir) -> Tree {
    let tree = Tree::read(folder.path()).unwrap();
    assert_eq!(tree.problems, []);
    tree
}

/// The functions of a library with one file.
pub(crate) fn functions(text: &str) -> Vec<Function> {
    read(&package(&[("src/lib.rs", text)])).functions
}

pub(crate) fn everything(_: &Function) -> bool {
    true
}

/// Selects the functions of a module: `shop.till.`.
pub(crate) fn in_module(path: &str) -> impl Fn(&Function) -> bool {
    move |function| function.signatures.iter().any(|it| it.contains(path))
}

pub(crate) fn probe() -> Attribute {
    Attribute::parse("::baler::probe").unwrap()
}

/// Writes changes to disk.
pub(crate) fn apply(changes: &[Change]) {
    for change in changes {
        fs::write(&change.path, change.after()).unwrap();
    }
}
