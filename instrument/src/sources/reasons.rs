//! The reasons why a function cannot have a probe.

use crate::signature::{is_for_tests, naked};
use syn::{AttrStyle, Attribute, FnModifiers, Meta, Path, Signature, Token};

/// The reason for a function in the tokens of a macro.
pub(crate) const IN_MACRO: &str = "inside a macro";

/// The reason for a file that is not among those of the folder.
pub(crate) const ELSEWHERE: &str = "in a file outside of the folder, or behind a link";

/// The reason for a probe with the option `skip`.
pub(crate) const SKIP: &str = "marked with `skip`";

/// The reason for a function without a body.
pub(crate) const NO_BODY: &str = "a declaration without a body";

/// The reason for tests.
pub(crate) const TEST: &str = "a test";

/// Attributes of blocks that do not change their functions. Any other one may be a macro.
const HARMLESS: [&str; 22] = [
    "allow",
    "automatically_derived",
    "cfg",
    "cfg_attr",
    "clippy",
    "coverage",
    "debugger_visualizer",
    "deny",
    "deprecated",
    "diagnostic",
    "doc",
    "expect",
    "forbid",
    "inline",
    "macro_use",
    "must_use",
    "no_implicit_prelude",
    "path",
    "probe",
    "recursion_limit",
    "rustfmt",
    "warn",
];

/// Returns the reason that the function itself gives.
pub(crate) fn of_function(
    attributes: &[Attribute],
    modifiers: &FnModifiers,
    signature: &Signature,
    has_body: bool,
) -> Option<&'static str> {
    let abi = signature.abi.as_ref();
    let is_foreign = abi.is_some_and(|abi| {
        let name = abi.name.as_ref();
        name.is_none_or(|name| name.value() != "Rust")
    });
    if !has_body {
        Some(NO_BODY)
    } else if is_for_tests(attributes) {
        Some(TEST)
    } else if signature.constness.is_some() {
        Some("a const fn")
    } else if naked(attributes).is_some() {
        Some("a naked function")
    } else if has(attributes, &["no_mangle", "export_name"]) {
        Some("exported to other languages (no_mangle, export_name)")
    } else if is_foreign {
        Some("an extern function")
    } else if has(
        attributes,
        &["alloc_error_handler", "lang", "panic_handler"],
    ) {
        Some("called by the runtime of the language")
    } else if modifiers.defaultness.is_some() {
        Some("a specialization")
    } else {
        None
    }
}

/// Returns the reason that a block gives to its functions.
pub(crate) fn of_block(attributes: &[Attribute]) -> Option<&'static str> {
    if is_for_tests(attributes) {
        return Some(TEST);
    }
    attributes
        .iter()
        .any(may_rewrite)
        .then_some("in a block that an attribute macro may rewrite")
}

/// Returns the reason that an implemented trait gives to its functions.
pub(crate) fn of_trait(path: &Path) -> Option<&'static str> {
    let last = path.segments.last();
    last.is_some_and(|it| it.ident == "GlobalAlloc")
        .then_some("in an allocator, which the probe itself calls")
}

/// Whether one of these is the attribute's name, also within `unsafe(…)` and `cfg_attr(…)`.
fn has(attributes: &[Attribute], names: &[&str]) -> bool {
    let mut metas = attributes.iter().flat_map(metas);
    metas.any(|meta| names.iter().any(|name| meta.path().is_ident(name)))
}

fn may_rewrite(attribute: &Attribute) -> bool {
    // No macro stands in `#![…]`.
    let outer = matches!(attribute.style, AttrStyle::Outer).then(|| metas(attribute));
    outer.iter().flatten().any(|meta| {
        let first = meta.path().segments.first();
        // `#[baler::probe]` is ours by its last name, all others by the first one.
        let last = meta.path().segments.last();
        last.is_none_or(|it| it.ident != "probe")
            && !first.is_some_and(|it| HARMLESS.iter().any(|name| it.ident == name))
    })
}

/// Returns an attribute, and those that it gives under a condition.
pub(crate) fn metas(attribute: &Attribute) -> Vec<Meta> {
    let mut metas = vec![attribute.meta.clone()];
    if attribute.path().is_ident("unsafe") {
        metas.extend(attribute.parse_args::<Meta>());
    } else if attribute.path().is_ident("cfg_attr") {
        let list = attribute
            .parse_args_with(syn::punctuated::Punctuated::<Meta, Token![,]>::parse_terminated);
        metas.extend(list.into_iter().flatten().skip(1));
    }
    metas
}
