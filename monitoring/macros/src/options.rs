//! What stands in the parentheses of `#[probe(…)]`.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, LitStr, Path, Token};

/// All options, for messages.
const OPTIONS: &str = "`name = \"…\"`, `crate = path` and `skip`";

/// The options of one probe.
#[derive(Clone)]
pub(crate) struct Options {
    /// The operation signature in place of the one made from the function.
    pub(crate) name: Option<LitStr>,
    /// The crate that is called, for those who re-export it.
    pub(crate) krate: Option<Path>,
    /// Leave out what this stands on.
    pub(crate) skip: Option<Span>,
}

impl Options {
    /// What a probe without any has.
    pub(crate) const fn none() -> Self {
        Self {
            name: None,
            krate: None,
            skip: None,
        }
    }

    /// Those of a function in a block with these options: its own, but for where the crate is.
    pub(crate) fn within(mut self, block: &Self) -> Self {
        self.krate = self.krate.or_else(|| block.krate.clone());
        self
    }

    /// Where the crate is.
    pub(crate) fn crate_path(&self) -> Path {
        let default = || syn::parse_quote!(::baler_monitoring);
        self.krate.clone().unwrap_or_else(default)
    }
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options = Self::none();
        let mut given: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            if !input.peek(Ident::peek_any) {
                return Err(input.error(format!("expected an option: {OPTIONS}")));
            }
            let key = input.call(Ident::parse_any)?;
            if let Some(first) = given.iter().find(|first| **first == key) {
                return Err(twice(&key, first));
            }
            options.set(&key, input)?;
            given.push(key);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        if let (Some(skip), true) = (options.skip, given.len() > 1) {
            return Err(syn::Error::new(
                skip,
                "`skip` stands alone: there is nothing to measure",
            ));
        }
        Ok(options)
    }
}

impl Options {
    fn set(&mut self, key: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        if key == "skip" {
            self.skip = Some(key.span());
            return Ok(());
        }
        if key == "name" {
            assign(key, input)?;
            let name = input.parse::<LitStr>()?;
            if name.value().trim().is_empty() {
                return Err(syn::Error::new(
                    name.span(),
                    "the name of an operation is empty",
                ));
            }
            self.name = Some(name);
        } else if key == "crate" {
            assign(key, input)?;
            self.krate = Some(input.call(Path::parse_mod_style)?);
        } else {
            return Err(syn::Error::new(
                key.span(),
                format!("#[probe] has no option `{key}`; it has {OPTIONS}"),
            ));
        }
        Ok(())
    }
}

/// Takes the `=` of an option with a value.
fn assign(key: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
    if input.peek(Token![=]) {
        input.parse::<Token![=]>().map(drop)
    } else {
        let message = format!("`{key}` needs a value: `{key} = …`");
        Err(syn::Error::new(key.span(), message))
    }
}

/// A setting given twice is an error that points at both.
fn twice(key: &Ident, first: &Ident) -> syn::Error {
    let mut error = syn::Error::new(key.span(), format!("`{key}` is given twice"));
    error.combine(syn::Error::new(
        first.span(),
        format!("`{key}` is first given here"),
    ));
    error
}
