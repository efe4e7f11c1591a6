//! The derive macros of Baler's records; their documentation is at `baler_common::record`.
//!
//! Everything that could keep a schema from being built is refused here, at compile time, so that
//! the generated code has nothing that can fail when the schema is made.
//!
//! Each macro is there twice: the code that it writes names `baler_common`, or the crate `baler`,
//! which an application depends on alone.

mod attributes;
mod enumeration;
mod names;
mod structure;

use proc_macro::TokenStream;
use syn::{Data, DeriveInput, Path, parse_quote};

/// Derives `Record` and `FieldValue` for a struct, `FieldValue` for an enum without data.
///
/// The attributes are described at the trait, `baler_common::record::Record`.
#[proc_macro_derive(Record, attributes(record))]
pub fn derive_record(input: TokenStream) -> TokenStream {
    derive(input, expand_record, &parse_quote!(::baler_common))
}

/// Derives `Records` for an enum whose variants hold one record each.
///
/// It is described at the trait, `baler_common::record::Records`.
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

/// Writes an implementation. `krate` is the crate that has the module `record`.
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
