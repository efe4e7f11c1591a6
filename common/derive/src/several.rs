//! An enum whose variants hold one record each reads several types from one stream.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Fields, Path, Type, Variant};

use crate::attributes::TypeAttributes;

const WRONG: &str = "`Records` is for an enum whose variants hold one record each: \
                     `enum Shop { Order(Order), Click(Click) }`";

pub(crate) fn expand(input: &DeriveInput, krate: &Path) -> syn::Result<TokenStream> {
    let attributes = TypeAttributes::parse(input, krate)?;
    let Data::Enum(data) = &input.data else {
        return Err(syn::Error::new_spanned(&input.ident, WRONG));
    };
    let types = data.variants.iter().map(record_type);
    let types: Vec<&Type> = types.collect::<syn::Result<_>>()?;
    let variants: Vec<_> = data.variants.iter().map(|it| &it.ident).collect();
    let (Some(last_type), Some(last_variant)) = (types.last(), variants.last()) else {
        return Err(syn::Error::new_spanned(&input.ident, WRONG));
    };
    let arms = types.iter().zip(&variants).enumerate();
    // The last one takes every other position, so that there is none without an arm.
    let arms = arms.take(types.len() - 1).map(|(position, (ty, variant))| {
        quote! {
            #position => <#ty as __record::Records>::read_typed(0, projection, record)
                .map(Self::#variant)
        }
    });
    let ident = &input.ident;
    let common = &attributes.common;
    Ok(quote! {
        const _: () = {
            use #common::record as __record;

            #[automatically_derived]
            impl __record::Records for #ident {
                fn schemas() -> ::std::vec::Vec<&'static ::std::sync::Arc<__record::Schema>> {
                    ::std::vec![#(<#types as __record::Record>::schema()),*]
                }

                fn read_typed(
                    position: usize,
                    projection: &__record::Projection,
                    record: __record::RecordFields<'_>,
                ) -> ::std::result::Result<Self, __record::ReadError> {
                    match position {
                        #(#arms,)*
                        _ => <#last_type as __record::Records>::read_typed(0, projection, record)
                            .map(Self::#last_variant),
                    }
                }
            }
        };
    })
}

/// The type of the record that a variant holds.
fn record_type(variant: &Variant) -> syn::Result<&Type> {
    match &variant.fields {
        Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
            let field = fields.unnamed.first().map(|field| &field.ty);
            field.ok_or_else(|| syn::Error::new_spanned(variant, WRONG))
        }
        _ => Err(syn::Error::new_spanned(variant, WRONG)),
    }
}
