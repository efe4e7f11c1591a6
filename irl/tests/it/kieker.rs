//! Kieker's own files give its 72 record types.

use std::fs;
use std::path::Path;

use baler_irl::{Settings, Source, read};
use serde_json::Value;

/// The name and text of Kieker's files, and of one with the records of its tool opad.
pub(crate) fn texts() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts = Vec::new();
    let mut open = vec![root.join("../connectors/kieker/tests/data/irl")];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|it| it.unwrap().path()));
        } else {
            texts.push((
                path.display().to_string(),
                fs::read_to_string(&path).unwrap(),
            ));
        }
    }
    assert_eq!(texts.len(), 16);
    let opad = root.join("tests/fixtures/right/opad.irl");
    texts.push(("opad.irl".to_owned(), fs::read_to_string(opad).unwrap()));
    texts
}

#[test]
fn kiekers_files_give_the_fields_of_its_java_classes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let expected = root.join("../connectors/kieker/tests/golden/expected-records.json");
    let expected: Value = serde_json::from_str(&fs::read_to_string(expected).unwrap()).unwrap();
    let expected = expected.as_object().unwrap();
    let texts = texts();
    let sources: Vec<_> = texts
        .iter()
        .map(|(name, text)| Source { name, text })
        .collect();
    let workspace = read(&sources, &Settings::default());
    assert_eq!(workspace.error(), None);
    let mut found = 0;
    for record in workspace.records.iter().filter(|it| !it.is_abstract) {
        let fields = expected[&*record.name]["fields"].as_array().unwrap().iter();
        let fields: Vec<_> = fields
            .map(|it| {
                let java = it["java"].as_str().unwrap().replace("String", "string");
                format!("{java} {}", it["name"].as_str().unwrap())
            })
            .collect();
        let wire = record
            .wire()
            .map(|it| format!("{} {}", it.property_type, it.name));
        assert_eq!(wire.collect::<Vec<_>>(), fields, "{}", record.name);
        found += 1;
    }
    assert_eq!((found, expected.len()), (72, 72));
}
