//! The changes of files.

use std::fs;

use baler_instrument::{Attribute, State, remove_all};

use crate::tree::{MANIFEST, apply, everything, in_module, package, probe, read};

const MARKED: &str = "#[::baler::probe /* baler instrument */]";

#[test]
fn attributes_stand_below_the_documentation_and_above_all_other_attributes() {
    let text = "//! Shop.\r\n\r\n/// Sells.\r\n#[inline]\r\npub fn sell() {}\r\n\r\nmod m {\r\n\t// Note.\r\n\tpub(crate) unsafe fn a() {}\r\n}\r\nstruct S; impl S { fn b() {} fn c() {} }";
    let folder = package(&[("src/lib.rs", text)]);
    let changes = read(&folder).insert(everything, &probe());
    let expected = format!(
        "//! Shop.\r\n\r\n/// Sells.\r\n{MARKED}\r\n#[inline]\r\npub fn sell() {{}}\r\n\r\nmod m {{\r\n\t// Note.\r\n\t{MARKED}\r\n\tpub(crate) unsafe fn a() {{}}\r\n}}\r\nstruct S; impl S {{ {MARKED} fn b() {{}} {MARKED} fn c() {{}} }}"
    );
    assert_eq!(changes[0].after(), expected);
    apply(&changes);
    let tree = read(&folder);
    assert!(tree.functions.iter().all(|it| it.state == State::Inserted));
    assert_eq!(tree.insert(everything, &probe()), []);
    let (removed, problems) = remove_all(folder.path()).unwrap();
    assert_eq!((removed[0].after().as_str(), problems.len()), (text, 0));
}

#[test]
fn an_estimated_signature_is_given_to_the_probe() {
    let folder = package(&[(
        "src/lib.rs",
        "trait T { fn f(&self); }\nimpl T for String {\n    fn f(&self) {}\n}\n",
    )]);
    let attribute = Attribute::parse("::baler::probe(record = duration)").unwrap();
    let changes = read(&folder).insert(everything, &attribute);
    let line = "    #[::baler::probe(name = \"void String.f()\", record = duration) /* baler instrument */]\n";
    assert!(changes[0].after().contains(line), "{}", changes[0].after());
    apply(&changes);
    let tree = read(&folder);
    assert!(tree.functions[1].is_certain);
    assert_eq!(tree.outdated(everything).count(), 0);
    let lib = folder.path().join("src/lib.rs");
    let text = fs::read_to_string(&lib).unwrap();
    fs::write(&lib, text.replace("fn f(", "fn g(")).unwrap();
    assert_eq!(read(&folder).outdated(everything).count(), 1);
}

#[test]
fn only_selected_functions_are_changed() {
    let folder = package(&[(
        "src/lib.rs",
        "mod a { pub fn x() {} }\nmod b { pub fn x() {} }\n",
    )]);
    let changes = read(&folder).insert(in_module("shop.a."), &probe());
    apply(&changes);
    let mut tree = read(&folder);
    assert_eq!(tree.missing(everything).count(), 1);
    assert_eq!(tree.remove(in_module("shop.b.")), []);
    let removed = tree.remove(in_module("shop.a."));
    assert_eq!(removed[0].after(), changes[0].before);

    // Whatever else stands before the function.
    let text = changes[0]
        .after()
        .replace(MARKED, &format!("#[inline] {MARKED}"));
    fs::write(folder.path().join("src/lib.rs"), text).unwrap();
    let removed = read(&folder).remove(in_module("shop.a."));
    let text = changes[0]
        .before
        .replace("pub fn x() {} }\nmod b", "#[inline] pub fn x() {} }\nmod b");
    assert_eq!(removed[0].after(), text);
}

#[test]
fn diffs_are_unified() {
    let lines: String = (1..=20).map(|it| format!("// {it}\n")).collect();
    let text = format!("{lines}fn a() {{}}\n{lines}fn b() {{}} fn c() {{}}");
    let folder = package(&[("src/lib.rs", &text)]);
    let changes = read(&folder).insert(everything, &probe());
    assert_eq!(
        changes[0].diff("src/lib.rs"),
        format!(
            "--- a/src/lib.rs\n+++ b/src/lib.rs\n\
             @@ -18,7 +18,8 @@\n // 18\n // 19\n // 20\n+{MARKED}\n fn a() {{}}\n // 1\n // 2\n // 3\n\
             @@ -39,4 +40,5 @@\n // 18\n // 19\n // 20\n-fn b() {{}} fn c() {{}}\n\\ No newline at end of file\n\
             +{MARKED}\n+fn b() {{}} {MARKED} fn c() {{}}\n\\ No newline at end of file\n"
        )
    );
    apply(&changes);
    let (removed, _) = remove_all(folder.path()).unwrap();
    assert!(removed[0].diff("x").contains("@@ -18,8 +18,7 @@\n"));
}

#[test]
fn manifests_get_a_table_and_lose_it_again() {
    for manifest in [
        MANIFEST.to_owned(),
        MANIFEST.trim_end().to_owned(),
        MANIFEST.replace('\n', "\r\n"),
        format!("{MANIFEST}\n[dependencies]\nserde = \"1\" # why\n\n[features]\n"),
        format!("{MANIFEST}\n[dependencies.serde]\nversion = \"1\""),
    ] {
        let folder = package(&[("Cargo.toml", &manifest), ("src/lib.rs", "")]);
        let mut tree = read(&folder);
        let changes = tree.insert_dependency("version = \"0.1\"");
        assert_eq!((changes.len(), tree.problems.len()), (1, 0), "{manifest}");
        apply(&changes);
        let after = changes[0].after();
        assert!(
            after.contains("[dependencies.baler] # baler instrument"),
            "{after}"
        );
        assert_eq!(read(&folder).insert_dependency("version = \"0.1\""), []);
        let (removed, _) = remove_all(folder.path()).unwrap();
        assert_eq!(removed[0].after(), manifest);
        assert!(
            changes[0]
                .diff("Cargo.toml")
                .contains("\n+[dependencies.baler]")
        );
    }
}

#[test]
fn a_manifest_that_cannot_be_extended_is_a_problem() {
    let manifest = format!("dependencies = {{ serde = \"1\" }}\n{MANIFEST}");
    let folder = package(&[("Cargo.toml", &manifest), ("src/lib.rs", "")]);
    let mut tree = read(&folder);
    assert_eq!(tree.insert_dependency("version = \"0.1\""), []);
    assert!(
        tree.problems[0]
            .message
            .contains("add `baler = { version = \"0.1\" }`")
    );
    let known = format!("{MANIFEST}[dependencies]\nbaler.workspace = true\n");
    let folder = package(&[("Cargo.toml", &known), ("src/lib.rs", "")]);
    assert_eq!(
        baler_instrument::Tree::read(folder.path())
            .unwrap()
            .insert_dependency("x = 1"),
        []
    );
}

#[test]
fn attributes_are_checked() {
    for wrong in [
        "",
        "probe]",
        "::baler::trace",
        "probe = 1",
        "probe{record = duration}",
        "probe(skip)",
        "probe(name = \"x\")",
        "probe(a\n)",
        "probe(a /* b */)",
    ] {
        assert!(Attribute::parse(wrong).is_err(), "{wrong}");
    }
    for right in [
        "probe",
        "::baler::probe(record = aggregated, histogram,)",
        "crate::probe()",
    ] {
        Attribute::parse(right).unwrap();
    }
}
