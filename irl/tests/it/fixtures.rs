//! Files with every construct of the language, right and wrong, and what becomes of them.
//!
//! `BALER_BLESS=1` writes the expected results anew.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use baler_irl::{Base, Edition, Finding, Settings, Source, Workspace, line_and_column, read};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// The `.irl` files of a folder of fixtures, sorted: name and text.
pub(crate) fn texts(name: &str) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder(name)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "irl") {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            texts.push((name, fs::read_to_string(path).unwrap()));
        }
    }
    texts.sort();
    assert!(!texts.is_empty());
    texts
}

pub(crate) fn sources(texts: &[(String, String)]) -> Vec<Source<'_>> {
    texts
        .iter()
        .map(|(name, text)| Source { name, text })
        .collect()
}

fn shown(finding: &Finding, sources: &[Source<'_>]) -> String {
    let source = sources[finding.file];
    let (line, column) = line_and_column(source.text, finding.span.start);
    let marked = source
        .text
        .get(finding.span.start..finding.span.end)
        .unwrap()
        .replace('\n', "\\n");
    let (severity, rule) = (finding.severity.name(), finding.rule);
    let mut text = format!(
        "{severity}[{rule}] {line}:{column} `{marked}`: {}",
        finding.message
    );
    for part in [
        finding.hint.clone(),
        finding.related.map(|it| {
            let (line, _) = line_and_column(sources[it.0].text, it.1.start);
            format!("{} {}:{line}", it.2, sources[it.0].name)
        }),
    ] {
        part.into_iter()
            .for_each(|it| write!(text, " ({it})").unwrap());
    }
    text
}

/// All that a file has, one line each.
fn result(number: usize, workspace: &Workspace, sources: &[Source<'_>]) -> String {
    let mut text = String::new();
    for record in workspace.records.iter().filter(|it| it.file == number) {
        let kind = if record.is_abstract { "abstract " } else { "" };
        writeln!(text, "{kind}{}", record.name).unwrap();
        for field in record.wire() {
            write!(text, "\t{} {}", field.property_type, field.name).unwrap();
            if let Base::Enum(of) = &field.property_type.base {
                let literals = of
                    .literals
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"));
                write!(text, " ({})", literals.collect::<Vec<_>>().join(" ")).unwrap();
            }
            text.push('\n');
        }
        for property in &record.properties {
            for (is_it, name) in [
                (property.is_transient, "transient"),
                (property.is_auto_increment, "auto-increment"),
                (property.is_changeable, "changeable"),
            ] {
                if is_it {
                    writeln!(text, "\t{name}: {}", property.name).unwrap();
                }
            }
            if let Some(semantics) = &property.semantics {
                writeln!(text, "\tsemantics: {} is {semantics}", property.name).unwrap();
            }
            if let Some((owner, target)) = &property.grouped_by {
                writeln!(text, "\tgroup: {} is {owner}.{target}", property.name).unwrap();
            }
        }
        for alias in &record.aliases {
            writeln!(text, "\talias: {} is {}", alias.name, alias.target).unwrap();
        }
        for constant in &record.constants {
            let value = &constant.value.value;
            writeln!(
                text,
                "\tconst: {} {} = {value:?}",
                constant.constant_type, constant.name
            )
            .unwrap();
        }
    }
    for finding in workspace.findings.iter().filter(|it| it.file == number) {
        writeln!(text, "{}", shown(finding, sources)).unwrap();
    }
    text
}

fn compare(name: &str, settings: &Settings<'_>) -> Workspace {
    let texts = texts(name);
    let sources = sources(&texts);
    let workspace = read(&sources, settings);
    for (number, source) in sources.iter().enumerate() {
        let path = folder(name).join(source.name).with_extension("txt");
        let found = result(number, &workspace, &sources);
        if std::env::var_os("BALER_BLESS").is_some() {
            fs::write(&path, &found).unwrap();
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        assert!(found == expected, "{}:\n{found}", path.display());
    }
    workspace
}

#[test]
fn every_construct_becomes_what_it_means() {
    let workspace = compare("right", &Settings::default());
    assert_eq!(workspace.findings, []);
}

#[test]
fn every_mistake_is_found_at_its_place() {
    let workspace = compare("wrong", &Settings::default());
    assert!(workspace.error().is_some());
}

#[test]
fn the_edition_of_the_paper_is_read_with_warnings() {
    let settings = Settings {
        edition: Edition::Legacy,
        ..Settings::default()
    };
    let workspace = compare("legacy", &settings);
    assert_eq!(workspace.error(), None);
    assert!(!workspace.findings.is_empty());
}

#[test]
fn payloads_that_are_wrong_or_too_large_are_errors() {
    for (body, message) in [
        ("event E { C it { b } }", "it: p.C sends no property b"),
        (
            "event E { C it { hidden } }",
            "it: p.C sends no property hidden",
        ),
        (
            "event E { C it { next next } }",
            "the payload names it.next twice",
        ),
        (
            "event E { C it { a { next } } }",
            "it.a is int, which has no references",
        ),
        (
            "event E { C it { all } }",
            "it.all is an array, so the size of its objects has no bound",
        ),
        (
            "event E { C[] it { next } }",
            "it is an array, so the size of its objects has no bound",
        ),
        ("event E { int it {} }", "int is no class"),
        ("enum X { A } event E { X it { a } }", "X is no class"),
        ("event E { C it = 1 }", "a whole number does not fit p.C"),
        (
            "event E { const C it = 1 }",
            "a whole number does not fit p.C",
        ),
        ("event E { Nobody it }", "Nobody is not defined"),
        (
            "event E { C it { next { next { next { next { next { next { next { next } } } } } } } } }",
            "the payload it has more than 256 values, 8 levels of objects, or 255 bytes in a name",
        ),
    ] {
        let text =
            format!("package p template C {{ int a C next C[] all transient C hidden }} {body}");
        let settings = Settings {
            edition: Edition::Legacy,
            ..Settings::default()
        };
        let source = Source {
            name: "a.irl",
            text: &text,
        };
        let workspace = read(&[source], &settings);
        let error = workspace.error().unwrap_or_else(|| panic!("{body}"));
        assert!(
            error.message.starts_with(message),
            "{body}: {}",
            error.message
        );
    }
}

#[test]
fn a_lenient_reader_takes_the_only_definition_of_a_name() {
    let sources = [
        Source {
            name: "a.irl",
            text: "package a event E : T",
        },
        Source {
            name: "b.irl",
            text: "package b template T { int x }",
        },
    ];
    let strict = read(&sources, &Settings::default());
    let error = strict.error().unwrap();
    assert_eq!(error.hint.as_deref(), Some("add `import b.T`"));
    let settings = Settings {
        lenient: true,
        ..Settings::default()
    };
    let lenient = read(&sources, &settings);
    assert_eq!(lenient.error(), None);
    assert_eq!(
        lenient.findings[0].message,
        "T is not defined here; b.T is taken"
    );
    assert_eq!(lenient.records[0].wire().count(), 1);
}

#[test]
fn types_that_are_known_without_files_are_parents() {
    let known = |name: &str| {
        let long = baler_irl::Type {
            base: Base::Long,
            dimensions: Vec::new(),
        };
        (name == "known.Base").then(|| vec![("timestamp".to_owned(), long)])
    };
    let settings = Settings {
        known: Some(&known),
        ..Settings::default()
    };
    let text = "package p import known.* event E extends Base { int a }";
    let workspace = read(
        &[Source {
            name: "a.irl",
            text,
        }],
        &settings,
    );
    assert_eq!(workspace.findings, []);
    let names: Vec<_> = workspace.records[0].wire().map(|it| &*it.name).collect();
    assert_eq!(names, ["timestamp", "a"]);
}

#[test]
fn documentation_belongs_to_the_definition_behind_it() {
    let text = "/***\n * A licence.\n ***/
        /** Not this. */ package p
        /**
         * An order
         * of <b>one</b> customer.
         */
        @author 'A' @since '1.2b' event E { /** Whole\n\t * cents. */
            long price // in euros
            /** Only the last one counts. */ /** How often. */
            int count int next /** Behind `next`. */
            /** A limit. */ const int MAX = 3
        }
        /** States. */ enum S { OPEN }
        /** Private. */ @since '2' sub Q M { S state }
        model M E";
    let source = Source {
        name: "a.irl",
        text,
    };
    let workspace = read(&[source], &Settings::default());
    assert_eq!(workspace.findings, []);
    let [order, product] = &*workspace.records else {
        panic!("there are two events");
    };
    let text = |it: &Option<std::sync::Arc<str>>| it.as_deref().unwrap_or("-").to_owned();
    let about = |it: &baler_irl::About| [&it.doc, &it.author, &it.since].map(text);
    assert_eq!(
        about(&order.about),
        ["An order\nof <b>one</b> customer.", "A", "1.2b"]
    );
    assert_eq!(about(&product.about), ["Private.", "-", "2"]);
    let docs: Vec<_> = order.properties.iter().map(|it| text(&it.doc)).collect();
    assert_eq!(docs, ["Whole\ncents.", "How often.", "-"]);
    assert_eq!(text(&order.constants[0].doc), "A limit.");
    let Base::Enum(state) = &product.properties[3].property_type.base else {
        panic!("state is an enum");
    };
    assert_eq!(text(&state.about.doc), "States.");
}
