//! A probed function, its restrictions, and its signature in Kieker's text form.
//!
//! Kieker uses the form of AspectJ, `public static void bookstore.Catalog.getBook(boolean)`. Its
//! tools split it at the first `(`, at the last blank before it, and at the last `.` before it
//! (`ClassOperationSignaturePair.splitOperationSignatureStr`). A type is therefore written without
//! blanks, commas and parentheses. Generic arguments, lifetimes and references are left out, so
//! `&mut HashMap<K, V>` is `HashMap`.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, FnArg, Path, ReturnType, Signature, Token, Type, TypeParamBound, Visibility};

/// A function or method with a body.
///
/// The body stays a list of tokens: it is neither parsed nor changed.
pub(crate) struct Function {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) signature: Signature,
    /// The `#![…]` at the start of the body.
    pub(crate) inner_attributes: Vec<Attribute>,
    pub(crate) body: TokenStream,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility: Visibility = input.parse()?;
        if let Some(kind) = other_item(input) {
            return Err(input.error(format!(
                "#[probe] goes on a function, a method, an impl block, a trait or a module, not on \
                 {kind}"
            )));
        }
        let signature: Signature = input.parse()?;
        check(&attributes, &signature)?;
        if input.peek(Token![;]) {
            return Err(syn::Error::new(
                signature.ident.span(),
                "#[probe] needs a body: put it on the implementation, not on the declaration",
            ));
        }
        let content;
        syn::braced!(content in input);
        Ok(Self {
            attributes,
            visibility,
            signature,
            inner_attributes: content.call(Attribute::parse_inner)?,
            body: content.parse()?,
        })
    }
}

impl Function {
    /// Whether the body may become the body of a closure.
    ///
    /// It must not await. The function must not ask for its caller, use features of some processors
    /// only, take any number of arguments, or have a type that only functions have.
    pub(crate) fn can_be_a_closure(&self) -> bool {
        let attributes = ["track_caller", "target_feature"];
        let is_of_functions = |attribute: &Attribute| {
            attributes
                .iter()
                .any(|name| attribute.path().is_ident(name))
                || attribute.path().is_ident("unsafe")
        };
        let never = |output: &ReturnType| matches!(output, ReturnType::Type(_, it) if matches!(**it, Type::Never(_)));
        self.signature.asyncness.is_none()
            && self.signature.variadic.is_none()
            && !never(&self.signature.output)
            && !self
                .attributes
                .iter()
                .chain(&self.inner_attributes)
                .any(is_of_functions)
    }
}

impl ToTokens for Function {
    /// Writes the function as it was.
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self {
            attributes,
            visibility,
            signature,
            inner_attributes,
            body,
        } = self;
        tokens.extend(quote! {
            #(#attributes)*
            #visibility #signature {
                #(#inner_attributes)*
                #body
            }
        });
    }
}

/// Returns the kind of the item that is not a function, if the first token shows it.
fn other_item(input: ParseStream<'_>) -> Option<&'static str> {
    if input.peek(Token![struct]) || input.peek(Token![enum]) || input.peek(Token![union]) {
        Some("a type: put it on its impl block")
    } else if input.peek(Token![let]) || input.peek(Token![|]) || input.peek(Token![move]) {
        Some("a closure or statement: use the macro enter! for a block")
    } else if is_foreign(input) {
        Some("declarations of foreign functions: they have no body here")
    } else {
        None
    }
}

/// Whether a block `extern "C" { … }` follows.
fn is_foreign(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    ahead.parse::<Option<Token![unsafe]>>().is_ok()
        && ahead.parse::<syn::Abi>().is_ok()
        && ahead.peek(syn::token::Brace)
}

/// Refuses functions in which a probe cannot work.
fn check(attributes: &[Attribute], signature: &Signature) -> syn::Result<()> {
    if let Some(token) = &signature.constness {
        return Err(syn::Error::new(
            token.span(),
            "#[probe] cannot measure a const fn: at compile time there is no clock",
        ));
    }
    if let Some(attribute) = naked(attributes) {
        return Err(syn::Error::new(
            attribute.span(),
            "#[probe] cannot measure a naked function: it may not have code of its own",
        ));
    }
    Ok(())
}

/// Returns the attribute of a naked function, if there is one.
pub(crate) fn naked(attributes: &[Attribute]) -> Option<&Attribute> {
    attributes.iter().find(|attribute| {
        attribute.path().is_ident("naked")
            || (attribute.path().is_ident("unsafe")
                && attribute
                    .parse_args::<Path>()
                    .is_ok_and(|path| path.is_ident("naked")))
    })
}

/// Returns the text before the operation's full name: `public Result`.
pub(crate) fn modifiers_and_return(visibility: &Visibility, signature: &Signature) -> String {
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
pub(crate) fn operation_name(signature: &Signature) -> String {
    signature.ident.unraw().to_string()
}

/// The types of the arguments: `Order, u32`.
pub(crate) fn argument_types(signature: &Signature) -> String {
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
