//! The formatter changes white space only, and a second run changes nothing.

use baler_irl::{Edition, Settings, Source, format, read};
use proptest::prelude::*;

use crate::{fixtures, kieker};

fn sound_files() -> Vec<(String, String)> {
    [
        fixtures::texts("right"),
        fixtures::texts("legacy"),
        kieker::texts(),
    ]
    .concat()
}

/// All that is no white space.
fn marks(text: &str) -> String {
    text.split_whitespace().collect()
}

fn formatted(text: &str) -> String {
    format(text, Edition::Legacy).unwrap_or_else(|it| panic!("{it:?}: {text}"))
}

fn assert_stable(text: &str) {
    let once = formatted(text);
    assert_eq!(marks(&once), marks(text));
    let twice = formatted(&once);
    assert!(once == twice, "{once}\n----\n{twice}");
}

#[test]
fn every_fixture_and_kiekers_files_keep_their_text() {
    for (name, text) in sound_files() {
        assert_stable(&text);
        let settings = Settings {
            edition: Edition::Legacy,
            lenient: true,
            known: None,
        };
        let shown = |text: &str| {
            let workspace = read(&[Source { name: "", text }], &settings);
            let records = workspace.records.iter();
            let fields = records.map(|it| {
                let fields = it
                    .wire()
                    .map(|it| format!("{} {}", it.property_type, it.name));
                (it.name.clone(), fields.collect::<Vec<_>>())
            });
            fields.collect::<Vec<_>>()
        };
        assert_eq!(shown(&formatted(&text)), shown(&text), "{name}");
    }
}

#[test]
fn layout_is_as_documented() {
    let text = "// head\n\n\npackage a . b\nimport a.b.*  import c\n/** Doc. */\n@author 'x' @since '1'\n\
        event E extends P:A , B{int[3]a=1 // one\n\n\n/* two\n     * lines */ alias a as b\n// last\n}\
        event F{} template T : A,\nB\nenum X{A=04,B}\nevent H {\n/** First. */ int a}\nevent G { int[][] a = { {1,2},\n{3} } } // end";
    let expected = "// head\n\npackage a.b\n\nimport a.b.*\nimport c\n\n/** Doc. */\n@author 'x' @since '1'\n\
        event E extends P : A, B {\n\tint[3] a = 1 // one\n\n\t/* two\n\t * lines */\n\talias a as b\n\t// last\n}\n\n\
        event F {}\n\ntemplate T : A,\n\tB\n\nenum X {\n\tA = 04,\n\tB\n}\n\nevent H {\n\t/** First. */\n\tint a\n}\n\n\
        event G {\n\tint[][] a = { { 1, 2 },\n\t\t{ 3 } }\n} // end\n";
    let found = formatted(text);
    assert!(found == expected, "{found}");
    let wrong = format("package p event {", Edition::Current).unwrap_err();
    assert_eq!(wrong[0].message, "{ where a name should be");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// Fixtures with other white space and further comments between their words.
    #[test]
    fn any_layout_of_a_fixture_becomes_one(
        file in 0_usize..100,
        blanks in prop::collection::vec(
            prop::sample::select(vec![" ", "\n", "\n\n\n", "\t ", " /* c */ ", "\n// c\n", " // c\n", "\n/*\n * c\n   d */\n", " /* a */ /* b */\n"]),
            1..40,
        ),
    ) {
        let files = sound_files();
        let (_, text) = &files[file % files.len()];
        let mut mangled = String::new();
        // Strings and comments with blanks stay as they are.
        let is_plain = !text.contains("//") && !text.contains("/*");
        for (number, line) in text.lines().enumerate() {
            let has_text = line.contains(['"', '\'']) || !is_plain;
            for (place, word) in line.split(' ').enumerate() {
                if place > 0 && has_text {
                    mangled.push(' ');
                } else if place > 0 {
                    mangled.push_str(blanks[(number + place) % blanks.len()]);
                }
                mangled.push_str(word);
            }
            mangled.push_str(if is_plain { blanks[number % blanks.len()] } else { "\n" });
        }
        assert_stable(&mangled);
    }
}
