use super::*;

#[test]
fn settings_know_their_lines() {
    let text = "# first\n[receive]\nfrom = \"null:\"\n\ntype = [\"a\", \"b\"]\nfollow = true\n\n[shipping]\nchunk_records = 1_000\n";
    let file = ConfigFile::parse(Path::new("f.toml"), text).unwrap();
    let seen: Vec<_> = file
        .entries()
        .iter()
        .map(|it| {
            (
                &*it.section,
                &*it.key,
                it.kind,
                it.values.join("|"),
                it.line,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("receive", "from", Kind::Text, "null:".to_owned(), 3),
            ("receive", "type", Kind::List, "a|b".to_owned(), 5),
            ("receive", "follow", Kind::Boolean, "true".to_owned(), 6),
            (
                "shipping",
                "chunk_records",
                Kind::Number,
                "1000".to_owned(),
                9
            ),
        ]
    );
}

#[test]
fn what_is_no_setting_is_told_with_its_line() {
    for (text, message) in [
        ("[a]\nb = \n", "f.toml:2: "),
        (
            "quiet = true",
            "f.toml:1: quiet stands outside of a section",
        ),
        (
            "[a]\n\nb = 1979-05-27",
            "f.toml:3: b: a datetime is no setting",
        ),
        ("[a]\nb = 0x10", "f.toml:2: b: write the number in decimal"),
        ("[a]\nb = 1\nb = 2", "f.toml:3: "),
    ] {
        let error = ConfigFile::parse(Path::new("f.toml"), text).unwrap_err();
        assert!(error.message.starts_with(message), "{}", error.message);
    }
}
