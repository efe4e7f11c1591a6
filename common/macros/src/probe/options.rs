//! The options in the parentheses of `#[probe(…)]`.

use baler_instrument::signature::returns_result;
use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, LitInt, LitStr, Path, Token};

use super::function::Function;

/// All options, for messages.
const OPTIONS: &str = "`name = \"…\"`, `record = kind`, `full = 1/n`, `sample = 1/n`, `histogram`, \
                       `busy`, `err`, `crate = path` and `skip`";

/// All kinds of records, for messages.
const KINDS: &str = "`operation`, `duration`, `aggregated` and `events`";

/// The kind of a call's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Operation,
    Duration,
    Aggregated,
    Events,
}

/// The options of one probe.
#[derive(Clone)]
pub(crate) struct Options {
    /// The operation signature; replaces the one made from the function.
    pub(crate) name: Option<LitStr>,
    /// The path of the called crate, for crates that re-export it.
    pub(crate) krate: Option<Path>,
    pub(crate) kind: Kind,
    /// Additionally, a full record of one in this number of calls.
    pub(crate) full: Option<u32>,
    /// Only one in this number of calls is recorded.
    pub(crate) sample: Option<u32>,
    pub(crate) histogram: bool,
    /// Additionally, the time of asynchronous calls' polls.
    pub(crate) busy: bool,
    /// A returned error fails the operation.
    pub(crate) err: bool,
    /// Leave this item out.
    pub(crate) skip: Option<Span>,
}

impl Options {
    /// Whether there is one record of each call, which does not depend on its result.
    pub(crate) fn is_of_every_call(&self) -> bool {
        self.kind != Kind::Events && self.full.is_none() && self.sample.is_none()
    }

    /// Returns the options of a probe without any.
    pub(crate) const fn none() -> Self {
        Self {
            name: None,
            krate: None,
            kind: Kind::Operation,
            full: None,
            sample: None,
            histogram: false,
            busy: false,
            err: false,
            skip: None,
        }
    }

    /// Whether a call may have a place in its trace.
    pub(crate) fn has_place_in_trace(&self) -> bool {
        matches!(self.kind, Kind::Operation | Kind::Events) || self.full.is_some()
    }

    /// Returns the options of a function within a block: its own, except the crate's path.
    pub(crate) fn within(mut self, block: &Self) -> Self {
        self.krate = self.krate.or_else(|| block.krate.clone());
        self
    }

    /// Returns the options of a function without its own, in a block with these options.
    pub(crate) fn of_block(&self, function: &Function) -> Self {
        Self {
            // Other functions of the block may return something else.
            err: self.err && returns_result(&function.signature),
            ..self.clone()
        }
    }

    /// Returns the crate's path.
    pub(crate) fn crate_path(&self) -> Path {
        let default = || syn::parse_quote!(::baler_monitoring);
        self.krate.clone().unwrap_or_else(default)
    }
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let (options, given) = Self::parse_all(input)?;
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
    /// Parses the options of `enter!`.
    pub(crate) fn parse_of_block(input: ParseStream<'_>, krate: Path) -> syn::Result<Self> {
        let (options, given) = Self::parse_all(input)?;
        let of_functions = ["name", "crate", "skip", "busy", "err"];
        let wrong = |key: &&Ident| of_functions.iter().any(|option| *key == option);
        if let Some(key) = given.iter().find(wrong) {
            let message = format!("`{key}` is an option of `#[probe]`, not of `enter!`");
            return Err(syn::Error::new(key.span(), message));
        }
        Ok(Self {
            krate: Some(krate),
            ..options
        })
    }

    /// Parses all options, and returns which ones are given.
    fn parse_all(input: ParseStream<'_>) -> syn::Result<(Self, Vec<Ident>)> {
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
        options.check(&given)?;
        Ok((options, given))
    }

    /// Refuses options that have no meaning together.
    fn check(&self, given: &[Ident]) -> syn::Result<()> {
        let refuse = |option: &str, reason: &str| match given.iter().find(|it| *it == option) {
            Some(key) => Err(syn::Error::new(key.span(), reason)),
            None => Ok(()),
        };
        if matches!(self.kind, Kind::Operation | Kind::Events) {
            refuse(
                "full",
                "`full` goes with `record = duration` or `aggregated`: every record of an \
                            operation is full",
            )?;
        }
        if self.kind == Kind::Events || !self.has_place_in_trace() {
            refuse(
                "busy",
                "`busy` goes with the record of an operation: with `record = operation` or `full`",
            )?;
        }
        if self.kind != Kind::Events {
            refuse("err", "`err` goes with `record = events`")?;
        }
        if self.kind != Kind::Aggregated {
            refuse("histogram", "`histogram` goes with `record = aggregated`")?;
        }
        Ok(())
    }

    fn set(&mut self, key: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        match key.to_string().as_str() {
            "skip" => self.skip = Some(key.span()),
            "histogram" => self.histogram = true,
            "busy" => self.busy = true,
            "err" => self.err = true,
            "full" => self.full = Some(one_in(key, input)?),
            "sample" => self.sample = Some(one_in(key, input)?),
            "record" => {
                assign(key, input)?;
                self.kind = input.parse()?;
            }
            "name" => {
                assign(key, input)?;
                let name = input.parse::<LitStr>()?;
                if name.value().trim().is_empty() {
                    return Err(syn::Error::new(
                        name.span(),
                        "the name of an operation is empty",
                    ));
                }
                self.name = Some(name);
            }
            "crate" => {
                assign(key, input)?;
                self.krate = Some(input.call(Path::parse_mod_style)?);
            }
            _ => {
                return Err(syn::Error::new(
                    key.span(),
                    format!("#[probe] has no option `{key}`; it has {OPTIONS}"),
                ));
            }
        }
        Ok(())
    }
}

impl Parse for Kind {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let kind = input.call(Ident::parse_any)?;
        match kind.to_string().as_str() {
            "operation" => Ok(Self::Operation),
            "duration" => Ok(Self::Duration),
            "aggregated" => Ok(Self::Aggregated),
            "events" => Ok(Self::Events),
            other => {
                let message = format!("there is no record `{other}`; there are {KINDS}");
                Err(syn::Error::new(kind.span(), message))
            }
        }
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

/// Takes `= 1/n`.
fn one_in(key: &Ident, input: ParseStream<'_>) -> syn::Result<u32> {
    assign(key, input)?;
    let one = input.parse::<LitInt>()?;
    let wrong = |span| {
        let message = format!("`{key}` is a share of calls: `{key} = 1/1000`");
        syn::Error::new(span, message)
    };
    if one.base10_parse::<u32>()? != 1 || !input.peek(Token![/]) {
        return Err(wrong(one.span()));
    }
    input.parse::<Token![/]>()?;
    let many = input.parse::<LitInt>()?;
    match many.base10_parse::<u32>()? {
        0 => Err(wrong(many.span())),
        many => Ok(many),
    }
}

/// Returns the error for a setting given twice; it points at both.
fn twice(key: &Ident, first: &Ident) -> syn::Error {
    let mut error = syn::Error::new(key.span(), format!("`{key}` is given twice"));
    error.combine(syn::Error::new(
        first.span(),
        format!("`{key}` is first given here"),
    ));
    error
}
