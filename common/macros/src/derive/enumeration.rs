//! Enums. Without data they are values of a field. With a record in each variant they are several
//! types.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DataEnum, DeriveInput, Fields, Path, Type, Variant};

use super::attributes::{TypeAttributes, VariantAttributes};
use super::names::{self, Names};

/// `baler_common::record::MAX_VARIANTS`.
const MAX_VARIANTS: usize = 65_536;

/// Implements `FieldValue`: an enum without data becomes the value of a field.
pub(crate) fn expand_value(
    input: &DeriveInput,
    data: &DataEnum,
    krate: &Path,
) -> syn::Result<TokenStream> {
    let attributes = TypeAttributes::parse(input, krate)?;
    let found = data.variants.len();
    if found == 0 || found > MAX_VARIANTS {
        return Err(syn::Error::new_spanned(
            &input.ident,
            format!("an enum must have 1 to {MAX_VARIANTS} variants; this one has {found}"),
        ));
    }
    let mut used = Names::default();
    let mut variant_names = Vec::with_capacity(found);
    let mut said = Vec::with_capacity(found);
    let mut other = None;
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(syn::Error::new_spanned(
                variant,
                "a variant of a record's enum has no data; the serde bridge takes enums with data",
            ));
        }
        let attributes_of_variant = VariantAttributes::parse(&variant.attrs)?;
        let rename = attributes_of_variant.rename.as_ref();
        let name = names::name_of(&variant.ident, rename, attributes.case);
        let span = rename.map_or_else(|| variant.ident.span(), |name| name.span());
        used.note(&name, "a variant", span)?;
        variant_names.push(name);
        if let Some(word) = &attributes_of_variant.other {
            if other.replace(&variant.ident).is_some() {
                return Err(syn::Error::new_spanned(
                    word,
                    "one variant stands for all others",
                ));
            }
        }
        said.push(attributes_of_variant);
    }
    for alias in said.iter().flat_map(|said| &said.aliases) {
        used.note(&alias.value(), "an alias", alias.span())?;
    }

    let ident = &input.ident;
    let common = &attributes.common;
    let name = &attributes.name;
    let idents = data.variants.iter().map(|variant| &variant.ident);
    let writes: Vec<_> = idents
        .clone()
        .zip(0..)
        .map(|(variant, number)| {
            let number = proc_macro2::Literal::u32_unsuffixed(number);
            quote!(Self::#variant => #number)
        })
        .collect();
    let reads = idents
        .zip(&variant_names)
        .zip(&said)
        .map(|((variant, name), said)| {
            let aliases = &said.aliases;
            quote!(::std::option::Option::Some(#name #(| #aliases)*) => Self::#variant)
        });
    let other = other.map(|variant| quote!(::std::option::Option::Some(_) => Self::#variant,));

    Ok(quote! {
        const _: () = {
            use #common::record as __record;

            #[automatically_derived]
            impl __record::FieldValue for #ident {
                fn field_type() -> __record::FieldType {
                    static TYPE: ::std::sync::OnceLock<::std::sync::Arc<__record::EnumType>> =
                        ::std::sync::OnceLock::new();
                    let enum_type = TYPE.get_or_init(|| {
                        __record::derived::enum_type(#name, &[#(#variant_names),*])
                    });
                    __record::FieldType::Enum(::std::sync::Arc::clone(enum_type))
                }

                const WIDTH: __record::Width = __record::Width::Four;

                #[inline]
                fn bits(&self) -> u64 {
                    match self {
                        #(#writes),*
                    }
                }

                fn write(&self, row: &mut __record::RowWriter<'_>) {
                    row.variant(match self {
                        #(#writes),*
                    });
                }

                fn read(
                    value: __record::ValueRef<'_>,
                    _: ::std::option::Option<&__record::Projection>,
                ) -> ::std::result::Result<Self, __record::ReadError> {
                    ::std::result::Result::Ok(match __record::derived::variant_name(value) {
                        #(#reads,)*
                        #other
                        _ => {
                            return ::std::result::Result::Err(
                                __record::derived::refuse::<Self>(value),
                            );
                        }
                    })
                }
            }
        };
    })
}

const WRONG: &str = "`Records` is for an enum whose variants hold one record each: \
                     `enum Shop { Order(Order), Click(Click) }`";

/// Implements `Records`: an enum whose variants hold one record each reads several types from one
/// stream.
pub(crate) fn expand_types(input: &DeriveInput, krate: &Path) -> syn::Result<TokenStream> {
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
    // The last arm takes every other position, so that all positions have an arm.
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
