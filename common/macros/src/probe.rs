//! `#[probe]` and the guard of `enter!`.
//!
//! tokens -> `options`, `block` and `function` (parsing) -> `expand` (the function with its probe).
//! The text of its signature is made by the module `signature` of the crate `baler-instrument`.
//!
//! The expansion names only `baler_monitoring::__private`. Without the feature `enable` the
//! function is checked and then returned unchanged.

mod block;
mod expand;
mod function;
mod options;

use proc_macro::TokenStream;

/// Expands an item. `krate` is the crate in the expansion, unless the options name another one.
pub(crate) fn attribute(
    options: TokenStream,
    item: TokenStream,
    krate: Option<syn::Path>,
) -> TokenStream {
    let original = item.clone();
    let expansion = syn::parse::<options::Options>(options).and_then(|mut options| {
        options.krate = options.krate.or(krate);
        expand_tokens(&options, item.into())
    });
    match expansion {
        Ok(expanded) => expanded.into(),
        // The function stays, so that its callers do not add errors of their own.
        Err(error) => {
            let mut tokens = TokenStream::from(error.into_compile_error());
            tokens.extend(original);
            tokens
        }
    }
}

/// Expands `[crate] [name] options`.
pub(crate) fn guard(input: TokenStream) -> TokenStream {
    let parse = |input: syn::parse::ParseStream<'_>| {
        let (krate, name);
        syn::bracketed!(krate in input);
        syn::bracketed!(name in input);
        let krate = krate.call(syn::Path::parse_mod_style)?;
        let name = name.parse()?;
        let options = options::Options::parse_of_block(input, krate)?;
        Ok(expand::block_guard(&options, &name))
    };
    let expansion = syn::parse::Parser::parse(parse, input);
    expansion
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Expands a function or a block of functions.
fn expand_tokens(
    options: &options::Options,
    item: proc_macro2::TokenStream,
) -> syn::Result<proc_macro2::TokenStream> {
    if options.skip.is_some() {
        return Ok(item);
    }
    let parse = |input: syn::parse::ParseStream<'_>| match block::parse(input)? {
        Some(item) => block::expand(item, options),
        None => Ok(expand::expand(options, &input.parse()?)),
    };
    syn::parse::Parser::parse2(parse, item)
}
