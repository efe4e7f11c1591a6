//! The arguments that a body in a closure takes along.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::quote_spanned;
use syn::visit::{self, Visit};
use syn::{FnArg, PatIdent};

use crate::function::Function;

/// Has a closure around the body capture the arguments that it names, the last one first, for what
/// is captured first is dropped first: so they are dropped in the order in which the function would
/// drop them, behind the locals of the body.
///
/// An argument that the body does not name stays with the function, whose compiler goes on to say
/// that it is unused, unless its own name says that this is meant.
pub(crate) fn in_order_of_drop(function: &Function) -> TokenStream {
    let span = Span::mixed_site();
    let mut names = Names(Vec::new());
    for argument in &function.signature.inputs {
        match argument {
            FnArg::Receiver(receiver) => names.0.push(Ident::from(receiver.self_token)),
            FnArg::Typed(argument) => names.visit_pat(&argument.pat),
        }
    }
    let is_meant =
        |name: &&Ident| name.to_string().starts_with('_') || is_named(&function.body, name);
    let names: Vec<_> = names.0.iter().rev().filter(is_meant).collect();
    if names.len() < 2 {
        return TokenStream::new();
    }
    quote_spanned!(span=> let _ = (#(&#names,)*);)
}

/// The names that a pattern binds.
struct Names(Vec<Ident>);

impl<'ast> Visit<'ast> for Names {
    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        self.0.push(pattern.ident.clone());
        visit::visit_pat_ident(self, pattern);
    }
}

/// Whether a name stands anywhere in these tokens.
fn is_named(tokens: &TokenStream, name: &Ident) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == *name,
        TokenTree::Group(group) => is_named(&group.stream(), name),
        _ => false,
    })
}
