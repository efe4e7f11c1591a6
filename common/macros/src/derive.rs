//! `#[derive(Record)]` and `#[derive(Records)]`.
//!
//! Everything for which a schema could be refused is refused here, at compile time. So the
//! generated code cannot fail when it makes the schema.

mod attributes;
mod enumeration;
mod names;
mod structure;

use proc_macro::TokenStream;
use syn::{Data, DeriveInput, Path};

pub(crate) fn record(input: TokenStream, krate: &Path) -> TokenStream {
    derive(input, expand_record, krate)
}

pub(crate) fn records(input: TokenStream, krate: &Path) -> TokenStream {
    derive(input, enumeration::expand_types, krate)
}

/// Writes an implementation. `krate` is the crate with the module `record`.
fn derive(
    input: TokenStream,
    expand: fn(&DeriveInput, &Path) -> syn::Result<proc_macro2::TokenStream>,
    krate: &Path,
) -> TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    let expanded = match input.generics.params.first() {
        Some(parameter) => Err(syn::Error::new_spanned(
            parameter,
            "a record type cannot be generic: it has one schema, and owns its fields",
        )),
        None => expand(&input, krate),
    };
    expanded
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

fn expand_record(input: &DeriveInput, krate: &Path) -> syn::Result<proc_macro2::TokenStream> {
    match &input.data {
        Data::Struct(data) => structure::expand(input, data, krate),
        Data::Enum(data) => enumeration::expand_value(input, data, krate),
        Data::Union(data) => Err(syn::Error::new_spanned(
            data.union_token,
            "a union cannot be a record; use a struct",
        )),
    }
}
