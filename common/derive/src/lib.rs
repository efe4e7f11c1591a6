//! The derive macro of Baler's records; its documentation is at `baler_common::record::Record`.
//!
//! Everything that could keep a schema from being built is refused here, at compile time, so that
//! the generated code has nothing that can fail when the schema is made.

mod attributes;
mod enumeration;
mod names;
mod structure;

use proc_macro::TokenStream;
use syn::{Data, DeriveInput};

/// Derives `Record` and `FieldValue` for a struct, `FieldValue` for an enum without data.
///
/// The attributes are described at the trait, `baler_common::record::Record`.
#[proc_macro_derive(Record, attributes(record))]
pub fn derive_record(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    expand(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

fn expand(input: &DeriveInput) -> syn::Result<proc_macro2::TokenStream> {
    if let Some(parameter) = input.generics.params.first() {
        return Err(syn::Error::new_spanned(
            parameter,
            "a record type cannot be generic: it has one schema, and owns its fields",
        ));
    }
    match &input.data {
        Data::Struct(data) => structure::expand(input, data),
        Data::Enum(data) => enumeration::expand(input, data),
        Data::Union(data) => Err(syn::Error::new_spanned(
            data.union_token,
            "a union cannot be a record; use a struct",
        )),
    }
}
