//! Parts of an operation's signature from the source text of a function, and what its attributes say
//! about probes. `#[probe]` and `baler instrument` share them, so that both make the same signatures.
//!
//! Kieker uses the form of AspectJ, `public static void bookstore.Catalog.getBook(boolean)`. Its
//! tools split it at the first `(`, at the last blank before it, and at the last `.` before it
//! (`ClassOperationSignaturePair.splitOperationSignatureStr`). A type is therefore written without
//! blanks, commas and parentheses. Generic arguments, lifetimes and references are left out, so
//! `&mut HashMap<K, V>` is `HashMap`.

use quote::ToTokens as _;
use syn::ext::IdentExt as _;
use syn::punctuated::Punctuated;
use syn::{
    Attribute, FnArg, Ident, Meta, Path, ReturnType, Signature, Token, Type, TypeParamBound,
    Visibility,
};

/// Whether this is the attribute `#[probe]`, by whatever path.
pub fn is_probe(attribute: &Attribute) -> bool {
    is_named(attribute, "probe")
}

/// Attributes of tests and benchmarks.
const TESTS: [&str; 8] = [
    "bench",
    "googletest",
    "proptest",
    "quickcheck",
    "rstest",
    "test",
    "test_case",
    "wasm_bindgen_test",
];

/// Whether attributes mark an item as a test, or as a part of tests alone.
pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        TESTS.iter().any(|name| is_named(attribute, name))
            || (attribute.path().is_ident("cfg")
                && attribute.parse_args().is_ok_and(|it| needs_test(&it)))
    })
}

/// Whether a condition holds in tests alone: `test`, `all(test, unix)`.
fn needs_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => list
            .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            .is_ok_and(|all| all.iter().any(needs_test)),
        _ => false,
    }
}

/// Whether attributes give an item a probe under a condition.
pub fn has_conditional_probe(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        is_named(attribute, "cfg_attr")
            && attribute
                .meta
                .to_token_stream()
                .to_string()
                .contains("probe")
    })
}

fn is_named(attribute: &Attribute, name: &str) -> bool {
    let last = attribute.path().segments.last();
    last.is_some_and(|last| last.ident == name)
}

/// Returns the attribute of a naked function, if there is one.
pub fn naked(attributes: &[Attribute]) -> Option<&Attribute> {
    attributes.iter().find(|attribute| {
        attribute.path().is_ident("naked")
            || (attribute.path().is_ident("unsafe")
                && attribute
                    .parse_args::<Path>()
                    .is_ok_and(|path| path.is_ident("naked")))
    })
}

/// Returns the text before the operation's full name: `public Result`.
pub fn modifiers_and_return(visibility: &Visibility, signature: &Signature) -> String {
    let returned = match &signature.output {
        ReturnType::Default => "void".to_owned(),
        ReturnType::Type(_, returned) => type_text(returned),
    };
    // A function that is visible only in its module has no modifier, like a Java method that is
    // visible only in its package.
    match visibility {
        Visibility::Public(_) => format!("public {returned}"),
        _ => returned,
    }
}

/// The function's own name.
pub fn operation_name(signature: &Signature) -> String {
    signature.ident.unraw().to_string()
}

/// The types of the arguments: `Order, u32`.
pub fn argument_types(signature: &Signature) -> String {
    let types: Vec<_> = signature
        .inputs
        .iter()
        .filter_map(|argument| match argument {
            FnArg::Receiver(_) => None,
            FnArg::Typed(argument) => Some(type_text(&argument.ty)),
        })
        .collect();
    types.join(", ")
}

/// Whether the name of the returned type looks like a result: `Result`, `io::Result`, `HttpResult`.
pub fn returns_result(signature: &Signature) -> bool {
    match &signature.output {
        ReturnType::Type(_, returned) => type_text(returned).ends_with("Result"),
        ReturnType::Default => false,
    }
}

/// A type as signatures have it: `HashMap` of `&mut HashMap<K, V>`.
pub fn type_text(written: &Type) -> String {
    match written {
        Type::Array(array) => format!("{}[]", type_text(&array.elem)),
        Type::Slice(slice) => format!("{}[]", type_text(&slice.elem)),
        Type::Group(group) => type_text(&group.elem),
        Type::Paren(paren) => type_text(&paren.elem),
        Type::Ptr(pointer) => type_text(&pointer.elem),
        Type::Reference(reference) => type_text(&reference.elem),
        Type::ImplTrait(implementor) => bounds_text(&implementor.bounds),
        Type::TraitObject(object) => bounds_text(&object.bounds),
        Type::Never(_) => "never".to_owned(),
        Type::Path(path) => path_text(&path.path),
        Type::Macro(invocation) => path_text(&invocation.mac.path),
        Type::Tuple(tuple) if tuple.elems.is_empty() => "void".to_owned(),
        Type::Tuple(_) => "tuple".to_owned(),
        Type::FnPtr(_) => "fn".to_owned(),
        _ => "unknown".to_owned(),
    }
}

/// The first trait among bounds: `impl Read + 'a` is `Read`.
fn bounds_text<'a>(bounds: impl IntoIterator<Item = &'a TypeParamBound>) -> String {
    bounds
        .into_iter()
        .find_map(|bound| match bound {
            TypeParamBound::Trait(bound) => Some(path_text(&bound.path)),
            _ => None,
        })
        .unwrap_or_else(|| "unknown".to_owned())
}

fn path_text(path: &Path) -> String {
    let is_relative = |name: &Ident| name == "crate" || name == "self" || name == "super";
    let names: Vec<_> = path
        .segments
        .iter()
        .map(|segment| &segment.ident)
        .filter(|name| !is_relative(name))
        .map(|name| name.unraw().to_string())
        .collect();
    names.join(".")
}
