//! A struct with named fields becomes a record.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DataStruct, DeriveInput, Fields, Ident, Path, Type};

use super::attributes::{DefaultValue, FieldAttributes, Role, TypeAttributes};
use super::names::{self, Names};

/// `baler_common::record::MAX_FIELDS`.
const MAX_FIELDS: usize = 1_024;

struct RecordField<'a> {
    ident: &'a Ident,
    field_type: &'a Type,
    name: String,
    attributes: FieldAttributes,
}

pub(crate) fn expand(
    input: &DeriveInput,
    data: &DataStruct,
    krate: &Path,
) -> syn::Result<TokenStream> {
    let attributes = TypeAttributes::parse(input, krate)?;
    let fields = fields(input, data, &attributes)?;
    let ident = &input.ident;
    let common = &attributes.common;
    let name = &attributes.name;
    let schema_fields = fields.iter().map(schema_field);
    let checks = fields.iter().map(|field| check(name, field));
    let timestamp = fields
        .iter()
        .find(|field| field.attributes.role == Some(Role::Timestamp))
        .map(timestamp);
    let writes = fields.iter().map(|field| {
        let ident = field.ident;
        quote_spanned! { at(field.field_type) => __record::FieldValue::write(&self.#ident, row); }
    });
    let words = fields.iter().enumerate().map(|(number, field)| {
        let ident = field.ident;
        quote_spanned! { at(field.field_type) =>
            words.set::<{ __record::derived::offset(WIDTHS, #number) }, _>(&self.#ident);
        }
    });
    let texts = fields.iter().enumerate().map(|(number, field)| {
        let ident = field.ident;
        quote_spanned! { at(field.field_type) =>
            texts.set::<
                { __record::derived::offset(WIDTHS, #number) },
                { __record::derived::texts(WIDTHS, #number) },
                _,
            >(&self.#ident);
        }
    });
    let reads = fields.iter().map(read);
    let field_count = fields.len();
    // A record without fields writes and reads nothing.
    let (row, source, mutable) = if field_count == 0 {
        (quote!(_row), quote!(_source), None)
    } else {
        (quote!(row), quote!(source), Some(quote!(mut)))
    };
    let types: Vec<_> = fields.iter().map(|field| field.field_type).collect();

    Ok(quote! {
        const _: () = {
            use #common::record as __record;

            #(#checks)*

            #[automatically_derived]
            impl __record::Record for #ident {
                fn schema() -> &'static ::std::sync::Arc<__record::Schema> {
                    static SCHEMA: ::std::sync::OnceLock<::std::sync::Arc<__record::Schema>> =
                        ::std::sync::OnceLock::new();
                    SCHEMA.get_or_init(|| {
                        __record::derived::schema(#name, ::std::vec![#(#schema_fields),*])
                    })
                }

                #timestamp

                fn write_fields(&self, #row: &mut __record::RowWriter<'_>) {
                    #(#writes)*
                }

                const WIDTHS: &'static [__record::Width] = &[
                    #(<#types as __record::FieldValue>::WIDTH),*
                ];

                #[inline(always)]
                fn write_words<S: __record::WordSink>(
                    &self,
                    sink: S,
                ) -> ::std::option::Option<S::Output> {
                    const WIDTHS: &[__record::Width] = <#ident as __record::Record>::WIDTHS;
                    if !__record::derived::is_flat(WIDTHS) {
                        return ::std::option::Option::None;
                    }
                    let #mutable texts = __record::derived::WordTexts::<
                        { __record::derived::texts(WIDTHS, #field_count) },
                    >::new();
                    #(#texts)*
                    let words = || {
                        const WORDS: usize = __record::derived::fixed_words(WIDTHS);
                        let #mutable words = __record::derived::WordFields([0; WORDS]);
                        #(#words)*
                        words.0
                    };
                    ::std::option::Option::Some(sink.put(texts.0, words))
                }

                fn read_fields(
                    #source: &mut __record::FieldSource<'_>,
                ) -> ::std::result::Result<Self, __record::ReadError> {
                    ::std::result::Result::Ok(Self { #(#reads),* })
                }
            }

            #[automatically_derived]
            impl __record::FieldValue for #ident {
                const SHAPE: __record::Shape = __record::Shape::record(&[
                    #(<#types as __record::FieldValue>::SHAPE),*
                ]);

                fn field_type() -> __record::FieldType {
                    __record::derived::record_type::<Self>()
                }

                fn write(&self, row: &mut __record::RowWriter<'_>) {
                    __record::Record::write_fields(self, row);
                }

                fn read(
                    value: __record::ValueRef<'_>,
                    projection: ::std::option::Option<&__record::Projection>,
                ) -> ::std::result::Result<Self, __record::ReadError> {
                    __record::derived::read_nested(value, projection)
                }
            }
        };
    })
}

/// Returns the struct's fields with their names, after all checks of a schema.
fn fields<'a>(
    input: &'a DeriveInput,
    data: &'a DataStruct,
    attributes: &TypeAttributes,
) -> syn::Result<Vec<RecordField<'a>>> {
    if let Fields::Unnamed(_) = data.fields {
        return Err(syn::Error::new_spanned(
            &input.ident,
            "the fields of a record need names, by which other versions of the type find them",
        ));
    }
    if data.fields.len() > MAX_FIELDS {
        let found = data.fields.len();
        return Err(syn::Error::new_spanned(
            &input.ident,
            format!("a record has at most {MAX_FIELDS} fields; this one has {found}"),
        ));
    }
    let mut used = Names::default();
    let mut timestamp_seen = false;
    let mut found = Vec::with_capacity(data.fields.len());
    for field in &data.fields {
        let Some(ident) = &field.ident else { continue };
        let said = FieldAttributes::parse(&field.attrs)?;
        let name = names::name_of(ident, said.rename.as_ref(), attributes.case);
        let span = said
            .rename
            .as_ref()
            .map_or_else(|| ident.span(), |name| name.span());
        used.note(&name, "a field", span)?;
        if said.role == Some(Role::Timestamp) && std::mem::replace(&mut timestamp_seen, true) {
            return Err(syn::Error::new_spanned(ident, "a record has one timestamp"));
        }
        found.push(RecordField {
            ident,
            field_type: &field.ty,
            name,
            attributes: said,
        });
    }
    for alias in found.iter().flat_map(|field| &field.attributes.aliases) {
        used.note(&alias.value(), "an alias", alias.span())?;
    }
    Ok(found)
}

/// Makes the field's part of the schema.
fn schema_field(field: &RecordField<'_>) -> TokenStream {
    let name = &field.name;
    let field_type = field.field_type;
    let aliases = &field.attributes.aliases;
    let role = field.attributes.role.map(|role| {
        let role = match role {
            Role::Timestamp | Role::UnixNanos => quote!(UnixNanos),
            Role::Nanos => quote!(Nanos),
        };
        quote!(.with_role(__record::Role::#role))
    });
    quote! {
        __record::Field::new(#name, <#field_type as __record::FieldValue>::field_type())
            #role
            #(.with_alias(#aliases))*
    }
}

/// Refuses at compile time everything that the schema would refuse at run time.
fn check(record: &str, field: &RecordField<'_>) -> TokenStream {
    let field_type = field.field_type;
    let name = &field.name;
    let span = at(field_type);
    let too_deep = format!("the type of {record}.{name} nests deeper than 16 levels");
    let nested = format!("the type of {record}.{name} has an optional directly inside an optional");
    let role = field.attributes.role.map(|_| {
        quote_spanned! { span =>
            const _: fn(&#field_type) -> ::std::option::Option<i64> =
                <#field_type as __record::derived::Nanoseconds>::nanoseconds;
        }
    });
    quote_spanned! { span =>
        const _: () = {
            ::std::assert!(
                !<#field_type as __record::FieldValue>::SHAPE.has_nested_optional(),
                #nested,
            );
            ::std::assert!(
                <#field_type as __record::FieldValue>::SHAPE.depth() <= __record::MAX_DEPTH,
                #too_deep,
            );
        };
        #role
    }
}

fn timestamp(field: &RecordField<'_>) -> TokenStream {
    let ident = field.ident;
    quote! {
        fn timestamp(&self) -> ::std::option::Option<i64> {
            __record::derived::Nanoseconds::nanoseconds(&self.#ident)
        }
    }
}

fn read(field: &RecordField<'_>) -> TokenStream {
    let ident = field.ident;
    let span = at(field.field_type);
    match &field.attributes.default {
        None => quote_spanned! { span => #ident: source.take()? },
        Some(DefaultValue::OfType) => quote_spanned! { span =>
            #ident: source.take_or(::std::default::Default::default)?
        },
        Some(DefaultValue::Expression(value)) => quote_spanned! { at(value) =>
            #ident: source.take_or(|| #value)?
        },
    }
}

/// Returns the position at which an error in the generated code is shown. Lints do not apply to it.
fn at(tokens: &impl Spanned) -> Span {
    Span::call_site().located_at(tokens.span())
}
