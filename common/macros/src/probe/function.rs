//! A probed function, and its restrictions.

use baler_instrument::signature::naked;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, ReturnType, Signature, Token, Type, Visibility};

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
