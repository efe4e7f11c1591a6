use super::{MAX_DEPTH, Source, text_to_insert};

fn source(text: &str) -> Source {
    Source::new(text.to_owned()).unwrap()
}

#[test]
fn positions_are_bytes_of_the_whole_text() {
    for text in [
        "fn a() {}",
        "\u{feff}fn a() {}",
        "#!/usr/bin/env run\nfn a() {}",
        "\u{feff}#!/usr/bin/env run\r\n// ä\r\nfn a() {}",
        "#![allow(dead_code)]\nfn a() {}",
        "/* ä \u{1f600} */ fn a() {}",
    ] {
        let source = source(text);
        let file = source.parse().unwrap();
        let Some(syn::Item::Fn(function)) = file.items.first() else {
            panic!("{text}");
        };
        let range = source.range(function.sig.ident.span());
        assert_eq!(&source.text[range.clone()], "a", "{text}");
        assert_eq!(source.line(range.start), text.lines().count(), "{text}");
    }
}

#[test]
fn errors_have_the_line_of_the_whole_text() {
    let error = |text: &str| Source::new(text.to_owned()).unwrap_err();
    assert_eq!(error("#!/bin/run\nfn a() {\n").0, 2);
    assert_eq!(error("fn a() {\n\n)").0, 3);
    let deep = "(".repeat(MAX_DEPTH + 1) + &")".repeat(MAX_DEPTH + 1);
    assert!(
        error(&format!("fn a() {{\n{deep}}}"))
            .1
            .contains("nested deeper")
    );
    let (line, message) = source("#!/bin/run\nfn a() {}\nfn 1() {}")
        .parse()
        .err()
        .unwrap();
    assert_eq!((line, message.as_str()), (3, "expected identifier"));
}

#[test]
fn attributes_stand_on_lines_of_their_own_where_they_can() {
    for (text, expected) in [
        ("fn a() {}", "#[x]\nfn a() {}"),
        ("  \tfn a() {}\r\n", "  \t#[x]\r\n  \tfn a() {}\r\n"),
        ("mod m { fn a() {} }", "mod m { #[x] fn a() {} }"),
        ("/** doc */ fn a() {}\n", "/** doc */ #[x] fn a() {}\n"),
    ] {
        let at = text.find("fn").unwrap();
        let inserted = text_to_insert(text, at, "#[x]");
        assert_eq!(
            format!("{}{inserted}{}", &text[..at], &text[at..]),
            expected
        );
    }
}

#[test]
fn only_marked_attributes_are_found() {
    let text = "#[::baler::probe]\nfn a() {}\n#[::baler::probe /* baler instrument */]\nfn b() {}\n\
                const T: &str = \"#[::baler::probe /* baler instrument */]\";\n\
                // #[::baler::probe /* baler instrument */]\n";
    let inserted = source(text).inserted();
    assert_eq!(inserted.len(), 1);
    assert_eq!(
        &text[inserted[0].clone()],
        "#[::baler::probe /* baler instrument */]\n"
    );
}
