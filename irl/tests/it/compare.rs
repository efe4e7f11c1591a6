//! Which differences of two versions break readers.

use baler_irl::{Edition, Effect, Record, Settings, Source, compare, read};

fn records(text: &str) -> Vec<Record> {
    let source = Source {
        name: "a.irl",
        text,
    };
    let settings = Settings {
        edition: Edition::Legacy,
        ..Settings::default()
    };
    let workspace = read(&[source], &settings);
    assert_eq!(workspace.error(), None, "{text}");
    workspace.records
}

/// The differences as text, with the marked part of the file.
fn changes(old: &str, new: &str) -> Vec<String> {
    let changes = compare(&records(old), &records(new));
    let shown = changes.into_iter().map(|it| {
        let text = if it.is_in_old { old } else { new };
        let marked = text.get(it.span.start..it.span.end).unwrap();
        format!("{:?} {}: {} `{marked}`", it.effect, it.name, it.what)
    });
    shown.collect()
}

#[test]
fn each_change_of_the_bytes_breaks_readers() {
    for (old, new, expected) in [
        (
            "event E { int a }",
            "event E { int a long b }",
            "Both p.E: long b was added `b`",
        ),
        (
            "event E { int a long b }",
            "event E { int a }",
            "Both p.E: long b was removed `b`",
        ),
        (
            "event E { int a }",
            "event E { long a }",
            "Both p.E: long a had the type int `a`",
        ),
        (
            "event E { int a }",
            "event E { int[] a }",
            "Both p.E: int[] a had the type int `a`",
        ),
        (
            "event E { int a }",
            "event E { int b }",
            "Both p.E: a was renamed to b `b`",
        ),
        (
            "event E { int a int b int c int d }",
            "event E { int a int c int b int d }",
            "Both p.E: the order was b, c and is c, b `c`",
        ),
        (
            "event E { transient int a }",
            "event E { int a }",
            "Both p.E: int a is no longer transient `a`",
        ),
        (
            "event E { int a }",
            "event E { transient int a }",
            "Both p.E: int a became transient `a`",
        ),
        (
            "template A { int a } template B { int b } event E : A, B",
            "template A { int a } template B { int b } event E : B, A",
            "Both p.E: the order was a, b and is b, a `b`",
        ),
        (
            "template T event E : T",
            "template T { int a } event E : T",
            "Both p.E: int a (from p.T) was added `a`",
        ),
        (
            "template T { int a } event E { T it }",
            "template T { int a T b } event E { T it }",
            "Both p.E: long it.b was added `it`",
        ),
        (
            "template T { int a } event E { T it }",
            "template T { long a } event E { T it }",
            "Both p.E: long it.a had the type int `it`",
        ),
        (
            "event E { int a } event F",
            "event E { int a }",
            "NewReaders p.F: type removed `F`",
        ),
        (
            "event E",
            "abstract event E",
            "NewReaders p.E: became abstract `E`",
        ),
        (
            "enum X { A, B } event E { X x }",
            "enum X { B, A } event E { X x }",
            "Both p.X: B stands at the position of A `x`",
        ),
        (
            "enum X { A, B } event E { X x }",
            "enum X { A, C, B } event E { X x }",
            "Both p.X: C was added before B `x`",
        ),
        (
            "enum X { A } event E { X[] x }",
            "enum X { A, B } event E { X[] x }",
            "OldReaders p.X: B was added at the end `x`",
        ),
        (
            "enum X { A, B } event E { X x }",
            "enum X { A } event E { X x }",
            "NewReaders p.X: B was removed `x`",
        ),
        (
            "enum X { A } enum Y : X { B } event E { Y x }",
            "enum X { A } enum Y : X { B, C } event E { Y x }",
            "Both p.Y: C was added before A `x`",
        ),
    ] {
        let changes = changes(&format!("package p {old}"), &format!("package p {new}"));
        assert_eq!(changes, [expected], "{new}");
    }
}

#[test]
fn a_change_without_bytes_breaks_nothing_and_is_said_once() {
    for (old, new, expected) in [
        (
            "event E",
            "event E event F { int a }",
            "p.F: type added `F`",
        ),
        (
            "event E",
            "event E abstract event F { int a }",
            "p.F: type added `F`",
        ),
        (
            "event E abstract event F",
            "event E",
            "p.F: abstract type removed `F`",
        ),
        (
            "event E",
            "@author 'A' event E",
            "p.E: its documentation, author or version changed `E`",
        ),
        (
            "template T { int a } event E : T event F : T",
            "template T { int a = 1 } event E : T event F : T",
            "p.T: the default value of a changed `a`",
        ),
        (
            "event E { int a }",
            "event E { /** A. */ int a }",
            "p.E: the documentation of a changed `a`",
        ),
        (
            "event E { int a }",
            "event E { changeable int a }",
            "p.E: `changeable` of a changed `a`",
        ),
        (
            "event E { int a }",
            "event E { int a : time }",
            "p.E: the value of the probe of a changed `a`",
        ),
        (
            "event E { int a }",
            "template T { int a } event E : T",
            "p.T: the declaring type of a changed `a`",
        ),
        (
            "event E { int a }",
            "event E { int a alias a as b }",
            "p.E: the alias b was added `b`",
        ),
        (
            "event E { const int N = 1 }",
            "event E { const int N = 2 }",
            "p.E: the constant N was int 1 and is int 2 `N`",
        ),
        (
            "event E",
            "event E { transient int a }",
            "p.E: int a was added `a`",
        ),
        (
            "enum X { A = 1 } event E { X x }",
            "enum X { A = 2 } event E { X x }",
            "p.X: the value of A was 1 and is 2 `x`",
        ),
    ] {
        let (old, new) = (format!("package p {old}"), format!("package p {new}"));
        assert_eq!(changes(&old, &new), [format!("Safe {expected}")], "{new}");
        assert!(compare(&records(&new), &records(&new)).is_empty(), "{new}");
    }
}

#[test]
fn breaking_changes_come_first() {
    let old = records("package p event A { int a } event B { int b }");
    let new = records("package p event A { int a = 1 } event B { long b }");
    let effects: Vec<_> = compare(&old, &new).iter().map(|it| it.effect).collect();
    assert_eq!(effects, [Effect::Both, Effect::Safe]);
}
