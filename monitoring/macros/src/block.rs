//! Blocks of functions: an impl block, a trait, a module written in place.
//!
//! Each function in them is written anew as if the attribute stood on it, before any other attribute
//! of the block sees it; everything else stays as it was.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::discouraged::Speculative;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Generics, Ident, ImplItem, Item, Meta, Signature, Token, TraitItem, Type,
    TypeParamBound, Visibility,
};

use crate::expand;
use crate::function::{Function, naked};
use crate::options::Options;

/// A block of functions.
pub(crate) struct Block {
    /// Everything before the braces, the attributes of the block included.
    head: TokenStream,
    inner_attributes: Vec<Attribute>,
    items: TokenStream,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Implementation,
    Trait,
    Module,
}

impl Block {
    /// Parses a block, if one comes; the stream stays where it was otherwise.
    pub(crate) fn parse(input: ParseStream<'_>) -> syn::Result<Option<Self>> {
        let ahead = input.fork();
        let attributes = ahead.call(Attribute::parse_outer)?;
        let visibility: Visibility = ahead.parse()?;
        let Some((kind, head)) = head(&ahead)? else {
            return Ok(None);
        };
        if matches!(kind, Kind::Module) && ahead.peek(Token![;]) {
            return Err(ahead.error(
                "#[probe] sees no functions in a module that has a file of its own: put it on \
                 them, or on their impl blocks",
            ));
        }
        let content;
        syn::braced!(content in ahead);
        let block = Self {
            head: quote!(#(#attributes)* #visibility #head),
            inner_attributes: content.call(Attribute::parse_inner)?,
            items: content.parse()?,
            kind,
        };
        input.advance_to(&ahead);
        Ok(Some(block))
    }

    /// Writes the block anew, with a probe in each of its functions.
    pub(crate) fn expand(self, options: &Options) -> syn::Result<TokenStream> {
        if let Some(name) = &options.name {
            return Err(syn::Error::new(
                name.span(),
                "`name` is that of one operation: put it on the function",
            ));
        }
        let Self {
            head,
            inner_attributes,
            items,
            kind,
        } = self;
        let parse = |input: ParseStream<'_>| expand_items(input, kind, options);
        let items = syn::parse::Parser::parse2(parse, items)?;
        Ok(quote!(#head { #(#inner_attributes)* #items }))
    }
}

/// What stands between the visibility of a block and its brace; `None` for everything else.
fn head(input: ParseStream<'_>) -> syn::Result<Option<(Kind, TokenStream)>> {
    let ahead = input.fork();
    let is_unsafe = ahead.parse::<Option<Token![unsafe]>>()?;
    let found = if ahead.peek(Token![impl]) {
        Some((Kind::Implementation, implementation_head(&ahead)?))
    } else if ahead.peek(Token![trait]) {
        Some((Kind::Trait, trait_head(&ahead)?))
    } else if ahead.peek(Token![mod]) {
        let keyword: Token![mod] = ahead.parse()?;
        let name: Ident = ahead.parse()?;
        Some((Kind::Module, quote!(#keyword #name)))
    } else {
        None
    };
    if found.is_some() {
        input.advance_to(&ahead);
    }
    Ok(found.map(|(kind, head)| (kind, quote!(#is_unsafe #head))))
}

fn implementation_head(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let keyword: Token![impl] = input.parse()?;
    let mut generics: Generics = input.parse()?;
    let first: Type = input.parse()?;
    let of = match input.parse::<Option<Token![for]>>()? {
        Some(token) => {
            let implementor: Type = input.parse()?;
            quote!(#token #implementor)
        }
        None => TokenStream::new(),
    };
    generics.where_clause = input.parse()?;
    let conditions = &generics.where_clause;
    Ok(quote!(#keyword #generics #first #of #conditions))
}

fn trait_head(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let keyword: Token![trait] = input.parse()?;
    let name: Ident = input.parse()?;
    let mut generics: Generics = input.parse()?;
    let colon: Option<Token![:]> = input.parse()?;
    let mut bounds = Punctuated::<TypeParamBound, Token![+]>::new();
    while colon.is_some() && !input.peek(Token![where]) && !input.peek(syn::token::Brace) {
        bounds.push_value(input.parse()?);
        if !input.peek(Token![+]) {
            break;
        }
        bounds.push_punct(input.parse()?);
    }
    generics.where_clause = input.parse()?;
    let conditions = &generics.where_clause;
    Ok(quote!(#keyword #name #generics #colon #bounds #conditions))
}

fn expand_items(input: ParseStream<'_>, kind: Kind, options: &Options) -> syn::Result<TokenStream> {
    let mut items = TokenStream::new();
    while !input.is_empty() {
        items.extend(expand_item(input, kind, options)?);
    }
    Ok(items)
}

fn expand_item(input: ParseStream<'_>, kind: Kind, options: &Options) -> syn::Result<TokenStream> {
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
    if matches!(kind, Kind::Module)
        && let Some(block) = Block::parse_measurable(input)?
    {
        return block.expand(options);
    }
    // In an impl block or trait there is nothing else that could hold a function.
    let (mut attributes, rest) = match kind {
        Kind::Implementation => attributes_and_rest::<ImplItem>(input)?,
        Kind::Trait => attributes_and_rest::<TraitItem>(input)?,
        Kind::Module => attributes_and_rest::<Item>(input)?,
    };
    let own = take_own(&mut attributes)?;
    match own {
        Some(own) if own.skip.is_none() => {
            // It was put there on purpose: what comes says why it cannot be measured, or is
            // another kind of block with options of its own.
            let item = quote!(#(#attributes)* #rest);
            crate::expand_tokens(&own.within(options), item)
        }
        _ => Ok(quote!(#(#attributes)* #rest)),
    }
}

/// Takes an item apart into its attributes and what follows them.
fn attributes_and_rest<T: Parse + ToTokens>(
    input: ParseStream<'_>,
) -> syn::Result<(Vec<Attribute>, TokenStream)> {
    let attributes = input.call(Attribute::parse_outer)?;
    let item: T = input.parse()?;
    Ok((attributes, item.into_token_stream()))
}

/// Whether a function comes that can be measured, and is not a test.
fn is_measurable(input: ParseStream<'_>) -> syn::Result<bool> {
    let ahead = input.fork();
    let attributes = ahead.call(Attribute::parse_outer)?;
    let _: Visibility = ahead.parse()?;
    let Ok(signature) = ahead.parse::<Signature>() else {
        return Ok(false);
    };
    Ok(signature.constness.is_none()
        && naked(&attributes).is_none()
        && !is_elsewhere(&attributes)
        && ahead.peek(syn::token::Brace))
}

impl Block {
    /// Parses a block within a module, unless it has a probe of its own or is for tests alone.
    fn parse_measurable(input: ParseStream<'_>) -> syn::Result<Option<Self>> {
        let attributes = input.fork().call(Attribute::parse_outer)?;
        let has_file = {
            let ahead = input.fork();
            ahead.call(Attribute::parse_outer)?;
            ahead.parse::<Visibility>()?;
            ahead.peek(Token![mod]) && ahead.peek3(Token![;])
        };
        if has_file || is_elsewhere(&attributes) || attributes.iter().any(is_probe) {
            return Ok(None);
        }
        Self::parse(input)
    }
}

/// Whether attributes say that what they stand on is a test, or has a probe under a condition.
fn is_elsewhere(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let last = attribute.path().segments.last();
        let is = |name: &str| last.is_some_and(|last| last.ident == name);
        let tokens = || attribute.meta.to_token_stream().to_string();
        is("test")
            || is("bench")
            || (is("cfg") && tokens().replace(' ', "") == "cfg(test)")
            || (is("cfg_attr") && tokens().contains("probe"))
    })
}

fn is_probe(attribute: &Attribute) -> bool {
    let last = attribute.path().segments.last();
    last.is_some_and(|last| last.ident == "probe")
}

/// Takes a function's own probe off its attributes, for it is what would be written otherwise.
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
