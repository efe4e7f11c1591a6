//! Removal is the exact inverse of insertion, for sources in any layout.

use baler_instrument::{Tree, remove_all};
use proptest::prelude::*;

use crate::tree::{apply, everything, package, probe};

/// Parts of a source, each a whole item or text between items.
fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("\t ".to_owned()),
        Just("// ä fn no() {}\n".to_owned()),
        Just("/* fn no() {} */".to_owned()),
        Just("/// Documentation.\r\nfn documented() {}".to_owned()),
        Just("/** Ä */ pub fn beside() {}".to_owned()),
        Just("#[inline]\n#[must_use] fn attributes() -> u8 { 1 }".to_owned()),
        Just("#[::baler::probe]\nfn by_hand() {}".to_owned()),
        Just("#[doc = \"x\"] unsafe fn doc() {}".to_owned()),
        Just("const T: &str = \"#[::baler::probe /* baler instrument */]\n\";".to_owned()),
        Just("macro_rules! m { () => { fn made() {} } }".to_owned()),
        Just("impl T for String { fn external(&self) { fn nested() {} } }".to_owned()),
        Just("trait T { fn declared(); fn default() {} }".to_owned()),
        Just("mod m {\n\t#![allow(dead_code)]\n\n    async fn inner() {}\n}".to_owned()),
        Just("fn inside() {\n    #![allow(unused)]\n    //! Inside.\n}".to_owned()),
        Just("/// D.\nfn d() { #![inline] }".to_owned()),
        Just("extern \"C\" { fn foreign(); }".to_owned()),
        Just(
            "fn r#type<'a, T: Into<u8>>(r#in: &'a T) -> impl Fn() -> T + 'a { || 'x' }".to_owned()
        ),
        "[a-z]{1,8}".prop_map(|name| format!("pub(crate) fn f_{name}() {{ let s = \"}}\"; }}")),
    ]
}

fn file() -> impl Strategy<Value = String> {
    let start = prop_oneof![
        Just(""),
        Just("\u{feff}"),
        Just("#!/usr/bin/env run\n"),
        Just("\u{feff}#!/usr/bin/env run\r\n"),
        Just("#![allow(unused)]"),
    ];
    (start, prop::collection::vec(part(), 0..12))
        .prop_map(|(start, parts)| start.to_owned() + &parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn remove_is_the_inverse_of_insert_and_insert_is_idempotent(text in file()) {
        let folder = package(&[("src/lib.rs", &text)]);
        let tree = Tree::read(folder.path()).unwrap();
        prop_assert_eq!(&tree.problems, &[]);
        let missing = tree.missing(everything).count();
        let changes = tree.insert(everything, &probe());
        prop_assert_eq!(changes.iter().map(|it| it.count()).sum::<usize>(), missing);
        apply(&changes);
        let tree = Tree::read(folder.path()).unwrap();
        prop_assert_eq!(&tree.problems, &[]);
        prop_assert_eq!(tree.insert(everything, &probe()), vec![]);
        let (removed, problems) = remove_all(folder.path()).unwrap();
        prop_assert_eq!(problems, vec![]);
        apply(&removed);
        let after = std::fs::read_to_string(folder.path().join("src/lib.rs")).unwrap();
        prop_assert_eq!(after, text);
    }
}
