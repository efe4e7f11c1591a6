//! Functions that cannot have a probe, and files that cannot be read.

use std::fs;

use baler_instrument::{State, Tree};

use crate::tree::{everything, functions, package, probe, read, write};

/// The reason for each function; an empty text if it can have a probe.
fn reasons(text: &str) -> Vec<(String, &'static str)> {
    let functions = functions(text).into_iter();
    functions
        .map(|it| match it.state {
            State::Skipped(reason) => (it.name, reason),
            _ => (it.name, ""),
        })
        .collect()
}

fn assert_reasons(text: &str, expected: &[(&str, &str)]) {
    let found = reasons(text);
    let found: Vec<_> = found
        .iter()
        .map(|(name, why)| (name.as_str(), *why))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn every_function_that_cannot_have_a_probe_has_a_reason() {
    const EXPORTED: &str = "exported to other languages (no_mangle, export_name)";
    const REWRITTEN: &str = "in a block that an attribute macro may rewrite";
    assert_reasons(
        r#"
        #![no_std]
        #![cfg_attr(unix, feature(never_type))]
        fn plain() { #![allow(unused)] }
        unsafe fn not_safe() {}
        pub(crate) async fn later() {}
        fn generic<T: Into<u8>>(it: impl Fn(T) -> T) -> impl Iterator<Item = T> { core::iter::empty() }
        #[tokio::main] async fn main() {}
        const fn fixed() {}
        extern "C" fn called() {}
        extern fn also_called() {}
        extern "Rust" fn ours() {}
        #[unsafe(naked)] extern "C" fn bare() {}
        #[unsafe(no_mangle)] pub fn named() {}
        #[cfg_attr(unix, export_name = "x")] pub fn exported() {}
        #[panic_handler] fn panicked() -> ! { loop {} }
        #[test] fn tested() { fn helper() {} }
        #[tokio::test] async fn tested_later() {}
        #[cfg(all(unix, test))] mod tests { fn helper() {} }
        #[cfg(not(test))] fn no_test() {}
        unsafe extern "C" { fn foreign(); }
        trait Sell { fn sell(&self); fn give(&self) {} }
        #[async_trait::async_trait] impl Sell for u8 { fn sell(&self) {} }
        #[cfg_attr(a, allow(unused), deny(warnings))] impl u8 { fn harmless() {} }
        unsafe impl std::alloc::GlobalAlloc for u8 { unsafe fn alloc(&self) {} }
        macro_rules! make { ($x:ident) => { fn made() { let f: fn(u8); } fn $x() {} } }
        wrap! { pub fn wrapped() {} }
        #[probe(skip)] fn skipped() {}
        "#,
        &[
            ("plain", ""),
            ("not_safe", ""),
            ("later", ""),
            ("generic", ""),
            ("main", ""),
            ("fixed", "a const fn"),
            ("called", "an extern function"),
            ("also_called", "an extern function"),
            ("ours", ""),
            ("bare", "a naked function"),
            ("named", EXPORTED),
            ("exported", EXPORTED),
            ("panicked", "called by the runtime of the language"),
            ("tested", "a test"),
            ("helper", "a test"),
            ("tested_later", "a test"),
            ("helper", "a test"),
            ("no_test", ""),
            ("foreign", "a declaration without a body"),
            ("sell", "a declaration without a body"),
            ("give", ""),
            ("sell", REWRITTEN),
            ("harmless", ""),
            ("alloc", "in an allocator, which the probe itself calls"),
            ("made", "inside a macro"),
            ("wrapped", "inside a macro"),
            ("skipped", "marked with `skip`"),
        ],
    );
}

#[test]
fn probes_by_hand_stay_the_only_ones() {
    let functions = functions(
        "#[probe] fn a() {}
         #[baler::probe] impl X { fn b() { fn c() {} } }
         #[cfg_attr(feature = \"x\", baler::probe)] fn d() {}",
    );
    let states: Vec<_> = functions
        .iter()
        .map(|it| (it.name.as_str(), it.state))
        .collect();
    assert_eq!(
        states,
        [
            ("a", State::ByHand),
            ("b", State::ByHand),
            ("c", State::Without),
            ("d", State::ByHand),
        ]
    );
}

#[test]
fn crates_that_are_not_applications_are_skipped_with_their_reason() {
    let folder = package(&[
        (
            "Cargo.toml",
            "[workspace]\nmembers = [\"app\", \"derive\", \"old\", \"baler\"]\nresolver = \"3\"\n",
        ),
        (
            "app/Cargo.toml",
            "[package]\nname = \"app\"\nedition = \"2024\"\n",
        ),
        ("app/src/main.rs", "fn main() {}"),
        ("app/build.rs", "fn main() {}"),
        (
            "app/tests/it.rs",
            "#[path = \"../src/shared.rs\"] mod shared; fn helper() {}",
        ),
        ("app/src/lib.rs", "mod shared;"),
        ("app/src/shared.rs", "fn shared() {}"),
        ("app/benches/speed.rs", "fn helper() {}"),
        ("app/examples/show.rs", "fn main() {}"),
        ("app/target/debug/made.rs", "fn x() {"),
        ("app/.hidden/made.rs", "fn x() {"),
        (
            "derive/Cargo.toml",
            "[package]\nname = \"derive\"\nedition = \"2024\"\n[lib]\nproc-macro = true\n",
        ),
        ("derive/src/lib.rs", "pub fn derive() {}"),
        ("old/Cargo.toml", "[package]\nname = \"old\"\n"),
        ("old/src/lib.rs", "pub fn old() {}"),
        (
            "baler/Cargo.toml",
            "[package]\nname = \"baler-common\"\nedition = \"2024\"\n",
        ),
        ("baler/src/lib.rs", "pub fn own() {}"),
    ]);
    let tree = read(&folder);
    let found: Vec<_> = tree
        .functions
        .iter()
        .map(|it| (it.file.display().to_string(), it.state))
        .collect();
    let found: Vec<_> = found
        .iter()
        .map(|(file, state)| (file.as_str(), *state))
        .collect();
    assert_eq!(
        found,
        [
            ("app/benches/speed.rs", State::Skipped("in a benchmark")),
            ("app/build.rs", State::Skipped("in a build script")),
            ("app/examples/show.rs", State::Skipped("in an example")),
            ("app/src/main.rs", State::Without),
            ("app/src/shared.rs", State::Without),
            ("app/tests/it.rs", State::Skipped("in an integration test")),
            (
                "baler/src/lib.rs",
                State::Skipped("a crate of Baler itself")
            ),
            (
                "derive/src/lib.rs",
                State::Skipped("in a procedural macro, which the compiler runs")
            ),
            ("old/src/lib.rs", State::Skipped("a crate of edition 2015")),
        ]
    );
    assert_eq!(tree.unreached, Vec::<std::path::PathBuf>::new());
}

#[test]
fn all_problems_are_reported_and_the_rest_is_instrumented() {
    let folder = package(&[
        (
            "src/lib.rs",
            "mod right;\nmod wrong;\nmod binary;\nmod lost;\nmod deep;\n",
        ),
        ("src/right.rs", "fn a() {}\n"),
        ("src/wrong.rs", "fn a() {}\nfn 2() {}\n"),
        (
            "src/deep.rs",
            &format!("\nconst X: u8 = {}1{};\n", "(".repeat(300), ")".repeat(300)),
        ),
        ("other/Cargo.toml", "[package\n"),
    ]);
    write(folder.path(), "src/binary.rs", b"fn a() {}\n\n// \xff\n");
    let tree = Tree::read(folder.path()).unwrap();
    let problems: Vec<_> = tree
        .problems
        .iter()
        .map(|it| {
            let name = it.file.file_name().unwrap().to_string_lossy().into_owned();
            let message = it.message.lines().next().unwrap_or_default();
            format!("{name}:{}: {message}", it.line)
        })
        .collect();
    assert_eq!(problems.len(), 5, "{problems:?}");
    assert!(problems[0].starts_with("Cargo.toml:1: "), "{problems:?}");
    assert_eq!(
        problems[1..],
        [
            "binary.rs:3: it is not UTF-8",
            "deep.rs:2: brackets are nested deeper than 200",
            "lib.rs:4: there is no file of the module `lost`",
            "wrong.rs:2: expected identifier",
        ]
    );
    assert_eq!(tree.insert(everything, &probe()).len(), 1);
}

#[test]
fn a_folder_without_a_package_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let error = Tree::read(folder.path()).unwrap_err();
    assert!(error.message.contains("no Cargo.toml"), "{error}");
    assert!(
        Tree::read(&folder.path().join("none"))
            .unwrap_err()
            .is_unreadable
    );
}

#[cfg(unix)]
#[test]
fn files_behind_links_and_outside_of_the_folder_stay() {
    let folder = package(&[
        ("outside.rs", "fn outside() {}"),
        ("shop/Cargo.toml", crate::tree::MANIFEST),
        (
            "shop/src/lib.rs",
            "mod linked;\n#[path = \"../../outside.rs\"] mod outside;\n",
        ),
    ]);
    let link = folder.path().join("shop/src/linked.rs");
    std::os::unix::fs::symlink("../../outside.rs", link).unwrap();
    fs::remove_file(folder.path().join("Cargo.toml")).unwrap_or_default();
    let tree = Tree::read(&folder.path().join("shop")).unwrap();
    assert_eq!(tree.problems, []);
    assert_eq!(tree.functions.len(), 1);
    let reason = State::Skipped("in a file outside of the folder, or behind a link");
    assert_eq!(tree.functions[0].state, reason);
}
