//! What stands in the parentheses of `#[probe(…)]`.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, LitStr, Path, Token};

/// All options, for messages.
const OPTIONS: &str = "`name = \"…\"` and `crate = path`";

/// The options of one probe.
pub(crate) struct Options {
    /// The operation signature in place of the one made from the function.
    pub(crate) name: Option<LitStr>,
    /// The crate that is called, for those who re-export it.
    pub(crate) krate: Path,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut name: Option<(Span, LitStr)> = None;
        let mut krate: Option<(Span, Path)> = None;
        while !input.is_empty() {
            if !(input.peek(Ident::peek_any) && input.peek2(Token![=])) {
                return Err(input.error(format!("expected an option: {OPTIONS}")));
            }
            let key = input.call(Ident::parse_any)?;
            input.parse::<Token![=]>()?;
            if key == "name" {
                let value = input.parse::<LitStr>()?;
                if value.value().trim().is_empty() {
                    return Err(syn::Error::new(
                        value.span(),
                        "the name of an operation is empty",
                    ));
                }
                set(&mut name, &key, value)?;
            } else if key == "crate" {
                set(&mut krate, &key, input.call(Path::parse_mod_style)?)?;
            } else {
                return Err(syn::Error::new(
                    key.span(),
                    format!("#[probe] has no option `{key}`; it has {OPTIONS}"),
                ));
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(Self {
            name: name.map(|(_, value)| value),
            krate: match krate {
                Some((_, path)) => path,
                None => syn::parse_quote!(::baler_monitoring),
            },
        })
    }
}

/// Takes an option's value; a setting given twice is an error that points at both.
fn set<T>(slot: &mut Option<(Span, T)>, key: &Ident, value: T) -> syn::Result<()> {
    if let Some((first, _)) = slot {
        let mut error = syn::Error::new(key.span(), format!("`{key}` is given twice"));
        error.combine(syn::Error::new(
            *first,
            format!("`{key}` is first given here"),
        ));
        return Err(error);
    }
    *slot = Some((key.span(), value));
    Ok(())
}
