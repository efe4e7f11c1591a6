//! The derive macros of Baler's records; their documentation is at `baler_common::record`.
//!
//! Everything for which a schema could be refused is refused here, at compile time. So the
//! generated code cannot fail when it makes the schema.
//!
//! Each macro exists twice, because its code names either `baler_common` or the crate `baler`. An
//! application may depend on `baler` alone.

mod attributes;
mod enumeration;
mod names;
mod structure;

use proc_macro::TokenStream;
use syn::{Data, DeriveInput, Path, parse_quote};

/// Derives `Record` and `FieldValue` for a struct, and `FieldValue` for an enum without data.
///
/// The trait `baler_common::record::Record` documents the attributes.
#[proc_macro_derive(Record, attributes(record))]
pub fn derive_record(input: TokenStream) -> TokenStream {
    derive(input, expand_record, &parse_quote!(::baler_common))
}

/// Derives `Records` for an enum whose variants hold one record each.
///
/// The trait `baler_common::record::Records` documents it.
#[proc_macro_derive(Records, attributes(record))]
pub fn derive_records(input: TokenStream) -> TokenStream {
    derive(
        input,
        enumeration::expand_types,
        &parse_quote!(::baler_common),
    )
}

/// `Record`, as the crate `baler` exports it.
#[doc(hidden)]
#[proc_macro_derive(FacadeRecord, attributes(record))]
pub fn derive_facade_record(input: TokenStream) -> TokenStream {
    derive(input, expand_record, &parse_quote!(::baler))
}

/// `Records`, as the crate `baler` exports it.
#[doc(hidden)]
#[proc_macro_derive(FacadeRecords, attributes(record))]
pub fn derive_facade_records(input: TokenStream) -> TokenStream {
    derive(input, enumeration::expand_types, &parse_quote!(::baler))
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
