//! No text makes the reader panic, hang or fill the memory.

use std::time::{Duration, Instant};

use baler_irl::{Edition, MAX_BYTES, Settings, Source, Workspace, format, read};
use proptest::prelude::*;

use crate::fixtures;

fn legacy(text: &str) -> Workspace {
    let settings = Settings {
        edition: Edition::Legacy,
        lenient: true,
        known: None,
    };
    let sources = [Source {
        name: "a.irl",
        text,
    }];
    let workspace = read(&sources, &settings);
    #[cfg(feature = "diagnostics")]
    for finding in workspace.findings.iter().take(5) {
        assert!(baler_irl::render(finding, &sources).contains(finding.rule));
    }
    workspace
}

/// A text with a layout keeps it.
fn assert_stable(text: &str) {
    if let Ok(once) = format(text, Edition::Legacy) {
        assert_eq!(format(&once, Edition::Legacy).as_ref(), Ok(&once), "{text}");
        let is_blank = |it: char| it.is_whitespace() || it == '\u{feff}';
        let marks = |text: &str| text.split(is_blank).collect::<String>();
        assert_eq!(marks(&once), marks(text));
    }
}

fn message(text: &str) -> String {
    legacy(text).error().unwrap().message.clone()
}

#[test]
fn hostile_files_end_soon() {
    let start = Instant::now();
    let fill = |head: &str, part: &str| {
        head.to_owned() + &part.repeat((MAX_BYTES - head.len()) / part.len())
    };
    for (head, part) in [
        ("", "x "),
        ("package p", " event E"),
        ("package p", " import a"),
        ("package p", " import a.*"),
        ("package p event E : a", ",a"),
        ("package p event E { int a = {", "{"),
        ("package p event E { a.b c {", "x{"),
        ("package p event E {", "A b "),
        ("package p event E {", "int a\n"),
        ("package p event E {", "}"),
        ("package p enum E {", "A, "),
        ("package p enum E {", "A "),
        ("package p event E { int", "[]"),
        ("package p ", "\\'\n"),
        ("package p ", "/*"),
        ("package p ", "'\n"),
        ("", "@author 'x' "),
    ] {
        let text = fill(head, part);
        let workspace = legacy(&text);
        assert!(workspace.error().is_some(), "{head}{part}");
        assert!(workspace.findings.len() <= 400, "{head}{part}");
    }
    let mut wide = String::from("package p template T {");
    (0..20_000).for_each(|it| wide.push_str(&format!(" int f{it}")));
    wide.push('}');
    (0..20).for_each(|it| wide.push_str(&format!(" event E{it} : T")));
    assert!(message(&wide).contains("more than 250000 properties"));
    let mut products = String::from("package p template T model M T");
    (0..600).for_each(|it| products.push_str(&format!(" event E{it} : T sub S{it} M {{ int a }}")));
    assert!(message(&products).contains("more than 250000 properties"));
    // Each property of a class is a value of each payload.
    let mut payloads = String::from("package p template C {");
    (0..200).for_each(|it| payloads.push_str(&format!(" C c{it}")));
    payloads.push_str(" } event E {");
    (0..50_000).for_each(|it| payloads.push_str(&format!(" C d{it}")));
    assert!(message(&payloads).contains("more than 250000 properties"));
    let name = "x".repeat(MAX_BYTES / 2);
    let long = format!("package p template C {{ int {name} }} event E {{ C a C b C c }}");
    assert!(message(&long).contains("255 bytes in a name"));
    let mut wildcards = String::from("package p");
    (0..1_000).for_each(|it| wildcards.push_str(&format!(" import a{it}.*")));
    (0..2_000).for_each(|it| wildcards.push_str(&format!(" event E{it} : U{it}")));
    assert!(legacy(&wildcards).findings.len() <= 400);
    assert!(
        start.elapsed() < Duration::from_secs(60),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn depth_and_size_are_bounded() {
    let diamond = |kind: &str, body: &str, end: &str| {
        let mut text = format!("package p {kind} T0 {body}");
        (1..60).for_each(|it| text.push_str(&format!(" {kind} T{it} : T{}, T{0} {end}", it - 1)));
        text
    };
    let templates = legacy(&(diamond("template", "{ int a }", "") + " event E : T59"));
    assert_eq!(templates.error(), None);
    assert_eq!(templates.records[0].wire().count(), 1);
    let mut chain = vec!["template T0".to_owned()];
    chain.extend((1..5_000).map(|it| format!("template T{it} : T{}", it - 1)));
    let forward = format!("package p {}", chain.join(" "));
    chain.reverse();
    let backward = format!("package p {}", chain.join(" "));
    for text in [forward, backward] {
        assert!(message(&text).contains("through more than 64 definitions"));
    }
    let deep = format!("package p event E {{ int a = {} }}", "{".repeat(1_000));
    assert!(message(&deep).contains("nested more than 64 deep"));
    assert!(message(&"x".repeat(MAX_BYTES + 1)).contains("1048577 bytes, more than 1048576"));
}

/// Texts of pieces of the language in any order.
fn pieces() -> impl Strategy<Value = String> {
    let pieces = [
        "package p",
        "import",
        "a.b",
        ".*",
        "event",
        "E",
        "abstract",
        "template",
        "T",
        "enum",
        "X",
        "{",
        "}",
        ":",
        ",",
        "=",
        "int",
        "a",
        "alias",
        "as",
        "grouped by",
        ".",
        "[",
        "]",
        "3",
        "-1",
        "1.5",
        "'x'",
        "\"",
        "/*",
        "*/",
        "//",
        "\n",
        "@since",
        "sub",
        "model",
        "const",
        "transient",
        "auto-increment",
        "^",
        "struct",
        "use",
        "default",
        "é",
        "\\",
        "KIEKER_VERSION",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..60).prop_map(|it| it.join(" "))
}

proptest! {
    #[test]
    fn any_text_is_read(text in prop_oneof![".*", pieces()]) {
        let workspace = legacy(&text);
        assert_stable(&text);
        assert_stable(&format!("package p {text}"));
        for finding in workspace.findings {
            prop_assert!(text.get(finding.span.start..finding.span.end).is_some());
        }
    }

    #[test]
    fn a_cut_or_mangled_file_is_read(file in 0_usize..100, cut in 0_usize..3_000, piece in pieces()) {
        let texts = [fixtures::texts("right"), fixtures::texts("legacy"), fixtures::texts("wrong")].concat();
        let text = &texts[file % texts.len()].1;
        let cut = (0..=cut % (text.len() + 1)).rev().find(|it| text.is_char_boundary(*it)).unwrap();
        let (head, tail) = text.split_at(cut);
        legacy(head);
        let mangled = format!("{head}{piece}{tail}");
        legacy(&mangled);
        assert_stable(&mangled);
    }
}
