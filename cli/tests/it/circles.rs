//! Modules of a crate import each other in no circle. Code that two of them need is below both.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::Path;

use cargo_metadata::MetadataCommand;

use crate::support::workspace;

#[test]
fn modules_import_each_other_in_no_circle() {
    let mut metadata = MetadataCommand::new();
    metadata.manifest_path(workspace("Cargo.toml")).no_deps();
    let mut found = Vec::new();
    for package in metadata.exec().unwrap().packages {
        let mut modules = BTreeMap::new();
        let folder = package.manifest_path.parent().unwrap().join("src");
        add_modules(folder.as_std_path(), "crate", &mut modules);
        let circles = circles(&modules).into_iter();
        found.extend(circles.map(|circle| format!("{}: {circle}", package.name)));
    }
    assert!(found.is_empty(), "circles:\n{}", found.join("\n"));
}

#[test]
fn circles_are_found() {
    let circles = |source: &str| {
        let module = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let modules = [
            module("crate", "pub use a::B;\n"),
            module("crate::a", "\nuse below::{self, F};\nuse std::fmt;\n"),
            module("crate::a::below", "\nuse super::super::c::{D as E};\n"),
            module("crate::c", source),
        ];
        circles(&modules.into())
    };
    let circle = "crate::a -> crate::a::below -> crate::c -> crate::a";
    assert_eq!(circles("\nuse crate::{\n    D, a::{B, C},\n};\n"), [circle]);
    assert_eq!(circles("mod tests {\n    use crate::a::B;\n}\n"), [""; 0]);
}

/// Adds the sources of a folder by the paths of their modules, without tests.
fn add_modules(folder: &Path, parent: &str, modules: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let module = match path.file_stem().unwrap().to_str().unwrap() {
            "tests" => continue,
            "lib" | "main" | "mod" => parent.to_owned(),
            name => format!("{parent}::{name}"),
        };
        if path.is_dir() {
            add_modules(&path, &module, modules);
        } else if path.extension().is_some_and(|it| it == "rs") {
            *modules.entry(module).or_default() += &fs::read_to_string(&path).unwrap();
        }
    }
}

/// Returns a circle for each group of modules that import each other.
fn circles(modules: &BTreeMap<String, String>) -> Vec<String> {
    let mut imports: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (module, source) in modules {
        // Imports of a module within the file, such as its tests, are indented.
        let statements = source.split("\nuse ").skip(1);
        let paths = statements.flat_map(|it| paths(it.split_once(';').unwrap().0));
        let targets = paths.map(|path| target(&path, module, modules));
        imports.insert(module, targets.filter(|it| it != module).collect());
    }
    let circle = |first: &&str| {
        let (mut ways, mut seen) = (VecDeque::from([vec![*first]]), BTreeSet::new());
        while let Some(way) = ways.pop_front() {
            let last = way[way.len() - 1];
            if way.len() > 1 && last == *first {
                return Some(way.join(" -> "));
            }
            let next = imports[last]
                .iter()
                .filter(|it| *it >= first && seen.insert(**it));
            ways.extend(next.map(|next| [&way[..], &[next]].concat()));
        }
        None
    };
    imports.keys().filter_map(circle).collect()
}

/// Returns the paths of an import, which may have lists in braces.
fn paths(import: &str) -> Vec<String> {
    let Some((before, list)) = import.split_once('{') else {
        return vec![import.split(" as ").next().unwrap().trim().to_owned()];
    };
    let (list, mut depth) = (list.rsplit_once('}').unwrap().0, 0);
    let items = list.split(|letter| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        letter == ',' && depth == 0
    });
    let paths = items.filter(|it| !it.trim().is_empty()).flat_map(paths);
    paths.map(|path| before.trim().to_owned() + &path).collect()
}

/// Returns the module that has the imported item, or re-exports it. It is `from` for other crates.
fn target<'a>(path: &str, from: &str, modules: &'a BTreeMap<String, String>) -> &'a str {
    let mut path = path
        .split("::")
        .fold(from.to_owned(), |module, name| match name {
            "crate" => name.to_owned(),
            "self" => module,
            "super" => module.rsplit_once("::").unwrap().0.to_owned(),
            name => format!("{module}::{name}"),
        });
    while !modules.contains_key(&path) {
        path.truncate(path.rfind("::").unwrap());
    }
    modules.get_key_value(&path).unwrap().0
}
