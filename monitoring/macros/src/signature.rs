//! A function's signature in the text form of Kieker, as far as a macro knows it.
//!
//! Kieker's own is AspectJ's, `public static void bookstore.Catalog.getBook(boolean)`; its tools
//! take it apart at the first `(`, at the last blank before it, and at the last `.` before it
//! (`ClassOperationSignaturePair.splitOperationSignatureStr`).
//! A type is therefore written without blanks, commas and parentheses: generic arguments, lifetimes
//! and references are left out, so `&mut HashMap<K, V>` is `HashMap`.

use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::{FnArg, Path, ReturnType, Signature, Type, TypeParamBound, Visibility};

/// What stands before the operation's full name: `public Result`.
pub(crate) fn modifiers_and_return(visibility: &Visibility, signature: &Signature) -> String {
    let returned = match &signature.output {
        ReturnType::Default => "void".to_owned(),
        ReturnType::Type(_, returned) => type_text(returned),
    };
    // Functions that are visible in their module alone have no modifier, as Java methods that are
    // visible in their package alone.
    match visibility {
        Visibility::Public(_) => format!("public {returned}"),
        _ => returned,
    }
}

/// The function's own name.
pub(crate) fn name(signature: &Signature) -> String {
    signature.ident.unraw().to_string()
}

/// The types of the arguments: `Order, u32`.
pub(crate) fn arguments(signature: &Signature) -> String {
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

/// Whether the function returns a type that is named like a result: `Result`, `io::Result`, `HttpResult`.
pub(crate) fn returns_result(signature: &Signature) -> bool {
    match &signature.output {
        ReturnType::Type(_, returned) => type_text(returned).ends_with("Result"),
        ReturnType::Default => false,
    }
}

fn type_text(written: &Type) -> String {
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
