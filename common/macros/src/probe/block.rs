//! Blocks of functions: an impl block, a trait, an inline module.
//!
//! Each function in them is expanded as if it had the attribute itself, before any other attribute
//! of the block sees it. Everything else stays as it was.

use baler_instrument::signature::{has_conditional_probe, is_for_tests, is_probe, naked};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::{ParseStream, Parser as _};
use syn::{Attribute, ImplItem, Item, Meta, Signature, Token, TraitItem, Visibility};

use super::expand;
use super::function::Function;
use super::options::Options;

/// Parses a block, if one follows; otherwise the stream does not advance.
pub(crate) fn parse(input: ParseStream<'_>) -> syn::Result<Option<Item>> {
    let ahead = input.fork();
    ahead.call(Attribute::parse_outer)?;
    ahead.parse::<Visibility>()?;
    ahead.parse::<Option<Token![unsafe]>>()?;
    if ahead.peek(Token![impl]) || ahead.peek(Token![trait]) || ahead.peek(Token![mod]) {
        input.parse().map(Some)
    } else {
        Ok(None)
    }
}

/// Expands a block, with a probe in each of its functions.
pub(crate) fn expand(mut block: Item, options: &Options) -> syn::Result<TokenStream> {
    if let Some(name) = &options.name {
        return Err(syn::Error::new(
            name.span(),
            "`name` is that of one operation: put it on the function",
        ));
    }
    match &mut block {
        Item::Impl(block) => {
            for item in &mut block.items {
                *item = ImplItem::Verbatim(expand_item(item.to_token_stream(), options)?);
            }
        }
        Item::Trait(block) => {
            for item in &mut block.items {
                *item = TraitItem::Verbatim(expand_item(item.to_token_stream(), options)?);
            }
        }
        Item::Mod(module) => {
            let Some((_, items)) = &mut module.content else {
                return Err(syn::Error::new_spanned(
                    module.semi,
                    "#[probe] sees no functions in a module that has a file of its own: put it on \
                     them, or on their impl blocks",
                ));
            };
            for item in items {
                *item = Item::Verbatim(if is_measurable_block(item) {
                    expand(item.clone(), options)?
                } else {
                    expand_item(item.to_token_stream(), options)?
                });
            }
        }
        _ => {}
    }
    Ok(block.into_token_stream())
}

fn expand_item(item: TokenStream, options: &Options) -> syn::Result<TokenStream> {
    let parse = |input: ParseStream<'_>| {
        if is_measurable(input)? {
            let mut function: Function = input.parse()?;
            let own = take_own(&mut function.attributes)?;
            let own = own.map_or_else(|| options.of_block(&function), |own| own.within(options));
            return Ok(if own.skip.is_some() {
                function.into_token_stream()
            } else {
                expand::expand(&own, &function)
            });
        }
        let mut attributes = input.call(Attribute::parse_outer)?;
        let own = take_own(&mut attributes)?;
        let rest: TokenStream = input.parse()?;
        let item = quote!(#(#attributes)* #rest);
        match own {
            // It was put there on purpose. The expansion reports why the item cannot be measured,
            // or the item is another kind of block with its own options.
            Some(own) if own.skip.is_none() => super::expand_tokens(&own.within(options), item),
            _ => Ok(item),
        }
    };
    parse.parse2(item)
}

/// Whether a function follows that can be measured and is not a test.
fn is_measurable(input: ParseStream<'_>) -> syn::Result<bool> {
    let ahead = input.fork();
    let attributes = ahead.call(Attribute::parse_outer)?;
    let _: Visibility = ahead.parse()?;
    let Ok(signature) = ahead.parse::<Signature>() else {
        return Ok(false);
    };
    Ok(signature.constness.is_none()
        && naked(&attributes).is_none()
        && !is_for_tests(&attributes)
        && !has_conditional_probe(&attributes)
        && ahead.peek(syn::token::Brace))
}

/// Whether an item of a module is a block that has no probe of its own and is not for tests alone.
fn is_measurable_block(item: &Item) -> bool {
    let attributes = match item {
        Item::Impl(block) => &block.attrs,
        Item::Trait(block) => &block.attrs,
        Item::Mod(module) if module.content.is_some() => &module.attrs,
        _ => return false,
    };
    !is_for_tests(attributes)
        && !has_conditional_probe(attributes)
        && !attributes.iter().any(is_probe)
}

/// Removes a function's own probe from its attributes, because the expansion replaces it.
fn take_own(attributes: &mut Vec<Attribute>) -> syn::Result<Option<Options>> {
    let Some(at) = attributes.iter().position(is_probe) else {
        return Ok(None);
    };
    let attribute = attributes.remove(at);
    match &attribute.meta {
        Meta::Path(_) => Ok(Some(Options::none())),
        _ => attribute.parse_args().map(Some),
    }
}
