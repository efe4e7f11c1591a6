//! The function a probe is put on, and what it cannot be put on.

use proc_macro2::TokenStream;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Signature, Token, Visibility};

/// A function or method with a body.
///
/// The body stays a list of tokens: it is neither understood nor changed.
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
                "#[probe] goes on a function or method, not on {kind}"
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

/// What comes instead of a function, if it can be told from the first token.
fn other_item(input: ParseStream<'_>) -> Option<&'static str> {
    let unsafe_item = |token: fn(ParseStream<'_>) -> bool| {
        let ahead = input.fork();
        ahead.peek(Token![unsafe]) && ahead.parse::<Token![unsafe]>().is_ok() && token(&ahead)
    };
    if input.peek(Token![impl]) || unsafe_item(|ahead| ahead.peek(Token![impl])) {
        Some("an impl block: put it on each of its methods")
    } else if input.peek(Token![trait]) || unsafe_item(|ahead| ahead.peek(Token![trait])) {
        Some("a trait: put it on the methods of its implementations")
    } else if input.peek(Token![mod]) {
        Some("a module: put it on each of its functions")
    } else if input.peek(Token![struct]) || input.peek(Token![enum]) || input.peek(Token![union]) {
        Some("a type: put it on each of its methods")
    } else if input.peek(Token![let]) || input.peek(Token![|]) || input.peek(Token![move]) {
        Some("a closure or statement: use the macro enter! for a block")
    } else {
        None
    }
}

/// Refuses functions in which a probe cannot work.
fn check(attributes: &[Attribute], signature: &Signature) -> syn::Result<()> {
    if let Some(token) = &signature.constness {
        return Err(syn::Error::new(
            token.span(),
            "#[probe] cannot measure a const fn: at compile time there is no clock",
        ));
    }
    let naked = attributes.iter().find(|attribute| {
        attribute.path().is_ident("naked")
            || (attribute.path().is_ident("unsafe")
                && attribute
                    .parse_args::<syn::Path>()
                    .is_ok_and(|path| path.is_ident("naked")))
    });
    if let Some(attribute) = naked {
        return Err(syn::Error::new(
            attribute.span(),
            "#[probe] cannot measure a naked function: it may not have code of its own",
        ));
    }
    Ok(())
}
