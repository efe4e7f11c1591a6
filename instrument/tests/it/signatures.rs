//! Signatures from the text of sources. A test of the program compares them with those at run time.

use crate::tree::{functions, package, read};

/// The signatures of a library, in order; `~` marks estimates.
fn signatures(text: &str) -> Vec<String> {
    let functions = functions(text);
    let one = |it: &baler_instrument::Function| {
        let mark = if it.is_certain { "" } else { "~" };
        format!("{mark}{}", it.signatures.join(" | "))
    };
    functions.iter().map(one).collect()
}

#[test]
fn methods_belong_to_the_path_where_their_type_is_defined() {
    assert_eq!(
        signatures(
            "pub mod types { pub struct Till; pub type Desk = Till; pub enum r#type { A } }
             mod reexport { pub use super::types::*; }
             mod rules {
                 use crate::types::Till as Register;
                 use super::reexport::{self, Desk};
                 impl Register { pub fn open(&self) {} }
                 impl Desk { fn close(&mut self, by: &mut std::collections::HashMap<u8, u8>) {} }
                 impl reexport::r#type { async fn r#move(self) -> Result<(), ()> { Ok(()) } }
             }"
        ),
        [
            "public void shop.types.Till.open()",
            "void shop.types.Till.close(std.collections.HashMap)",
            "Result shop.types.type.move()",
        ]
    );
}

#[test]
fn methods_of_types_without_names_belong_to_the_trait() {
    assert_eq!(
        signatures(
            "mod sale { pub trait Sell { fn sell(&self) {} } }
             use sale::Sell;
             impl Sell for [u8] { fn sell(&self) {} }
             impl<T> Sell for (T, u8) { fn sell(&self) {} }
             impl<T: Clone> Sell for T { fn sell(&self) {} }
             impl Sell for &str { fn sell(&self) {} }
             impl Sell for u8 { fn sell(&self) {} }
             impl dyn Sell { fn rent(&self) {} }"
        ),
        [
            "void shop.sale.Sell.sell()",
            "void shop.sale.Sell.sell()",
            "void shop.sale.Sell.sell()",
            "void shop.sale.Sell.sell()",
            "void str.sell()",
            "void u8.sell()",
            "void shop.sale.Sell.rent()",
        ]
    );
}

#[test]
fn types_that_are_not_found_are_estimates() {
    assert_eq!(
        signatures(
            "use std::collections::BTreeMap as Map;
             trait Sell { fn sell(&self); }
             impl Sell for Map<u8, u8> { fn sell(&self) {} }
             impl Sell for String { fn sell(&self) {} }
             impl Sell for Box<dyn Fn()> { fn sell(&self) {} }
             impl Sell for fn(u8) { fn sell(&self) {} }
             macro_rules! made { () => { struct Made; } }
             made!();
             impl Made { fn sell(&self) {} }
             mod a { pub struct Twice; }
             mod b { pub struct Twice; }
             #[cfg(unix)] use a::Twice;
             #[cfg(not(unix))] use b::Twice;
             impl Twice { fn sell(&self) {} }
             use own::own;
             impl own { fn sell(&self) {} }"
        )[1..],
        [
            "~void std.collections.BTreeMap.sell()",
            "~void String.sell()",
            "~void Box.sell()",
            "~void fn.sell()",
            "~void shop.Made.sell()",
            "~void Twice.sell()",
            "~void own.sell()",
        ]
    );
}

#[test]
fn functions_and_types_within_functions_have_their_paths() {
    assert_eq!(
        signatures(
            "struct Till;
             fn outer() {
                 use inner_type::Deep;
                 struct Local;
                 impl Local { fn of_local() {} }
                 impl Till { fn of_till() { fn inner() {} } }
                 if true { fn in_block() {} let f = || { fn in_closure() {} }; }
                 mod inner_type { pub struct Deep; impl Deep { fn deep() {} } }
             }
             async fn later() { fn inner() {} }
             const fn fixed() { fn inner() {} }
             const X: fn() = { fn in_const() {} in_const };"
        ),
        [
            "void shop.outer()",
            "void shop.outer.Local.of_local()",
            "void shop.Till.of_till()",
            "void shop.Till.of_till.inner()",
            "void shop.outer.in_block()",
            "void shop.outer.in_closure()",
            "void shop.outer.inner_type.Deep.deep()",
            "void shop.later()",
            "void shop.later.inner()",
            "void shop.fixed()",
            "void shop.fixed.inner()",
            "~void shop.X.in_const()",
        ]
    );
}

#[test]
fn a_probe_with_a_name_has_this_signature() {
    assert_eq!(
        signatures(
            "#[baler::probe(name = \"public void legacy.Till.close()\", record = events)]\nfn close() {}"
        ),
        ["public void legacy.Till.close()"]
    );
}

#[test]
fn modules_are_found_where_the_compiler_finds_them() {
    let folder = package(&[
        (
            "src/lib.rs",
            "mod a; mod b { mod c; #[path = \"d_file.rs\"] mod d; }\n#[path = \"odd/e.rs\"] mod e;\n#[cfg(none)] mod missing;\n#[cfg_attr(unix, path = \"f_unix.rs\")] mod f;",
        ),
        ("src/a.rs", "pub mod aa;\n#[path = \"beside.rs\"] mod g;"),
        ("src/a/aa.rs", "fn x() {}"),
        ("src/beside.rs", "fn x() {}"),
        ("src/b/c/mod.rs", "fn x() {} mod cc;"),
        ("src/b/c/cc.rs", "fn x() {}"),
        ("src/b/d_file.rs", "fn x() {}"),
        ("src/odd/e.rs", "fn x() {} mod ee;"),
        ("src/odd/ee.rs", "fn x() {}"),
        ("src/f_unix.rs", "fn x() {}"),
        ("src/forgotten.rs", "fn x() {}"),
        (
            "src/bin/my-tool.rs",
            "#[path = \"../a/aa.rs\"] mod shared; fn main() {}",
        ),
    ]);
    let tree = read(&folder);
    let mut found: Vec<_> = tree
        .functions
        .iter()
        .map(|it| it.signatures.join(" | "))
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            "void my_tool.main()",
            "void shop.a.aa.x() | void my_tool.shared.x()",
            "void shop.a.g.x()",
            "void shop.b.c.cc.x()",
            "void shop.b.c.x()",
            "void shop.b.d.x()",
            "void shop.e.ee.x()",
            "void shop.e.x()",
            "void shop.f.x()",
        ]
    );
    assert_eq!(tree.unreached.len(), 1);
    assert!(tree.unreached[0].ends_with("src/forgotten.rs"));
}
