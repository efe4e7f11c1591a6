//! The derive macro of Baler's records.

use proc_macro::TokenStream;

/// Derives `baler_common::record::Record`.
#[proc_macro_derive(Record, attributes(record))]
pub fn derive_record(_input: TokenStream) -> TokenStream {
    TokenStream::new()
}
