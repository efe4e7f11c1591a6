//! The function with its probe.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::visit_mut::{self, VisitMut};
use syn::{ReturnType, Type, TypeInfer};

use crate::function::Function;
use crate::options::Options;
use crate::signature;

/// Writes the function anew, with its probe around the body.
pub(crate) fn expand(options: &Options, function: &Function) -> TokenStream {
    if !cfg!(feature = "enable") {
        return function.to_token_stream();
    }
    let Function {
        attributes,
        visibility,
        signature,
        inner_attributes,
        ..
    } = function;
    let body = if signature.asyncness.is_some() {
        async_body(options, function)
    } else {
        sync_body(options, function)
    };
    // The locals below are invisible to the body, whatever names it uses.
    let span = Span::mixed_site();
    quote_spanned! {span=>
        #(#attributes)*
        #visibility #signature {
            #(#inner_attributes)*
            #body
        }
    }
}

/// A guard in front of the body: it sees every way out of it.
fn sync_body(options: &Options, function: &Function) -> TokenStream {
    let entered = entered(
        options,
        function,
        quote_spanned!(Span::mixed_site()=> enter),
    );
    let body = &function.body;
    quote_spanned! {Span::mixed_site()=>
        let __baler_probe = #entered;
        #body
    }
}

/// The body becomes a future of its own, and every poll of it takes place in the call's trace.
///
/// A wrapper type around the future would need a pin projection, hence unsafe code or another
/// crate; a pinned local needs neither and holds the body once.
/// Only the arguments are held twice, as the compiler does not reuse the place they came from.
fn async_body(options: &Options, function: &Function) -> TokenStream {
    let span = Span::mixed_site();
    let entered = entered(options, function, quote_spanned!(span=> enter_async));
    let output = output_hint(&function.signature.output);
    let body = &function.body;
    quote_spanned! {span=>
        let mut __baler_call = #entered;
        let mut __baler_body = ::core::pin::pin!(async move {
            #output
            #body
        });
        #[allow(clippy::let_and_return, reason = "the future must go before its call")]
        let __baler_output = ::core::future::poll_fn(|__baler_context| {
            __baler_call.poll(__baler_body.as_mut(), __baler_context)
        })
        .await;
        __baler_output
    }
}

/// The call site, and the call of it that begins a measurement.
///
/// `here` is a function inside the probed one, so its type name holds the path of module, type and
/// function: a macro that sees one method cannot know it.
fn entered(options: &Options, function: &Function, enter: TokenStream) -> TokenStream {
    let krate = options.crate_path();
    let span = Span::mixed_site();
    if let Some(name) = &options.name {
        return quote_spanned! {span=> {
            static SITE: #krate::__private::Site = #krate::__private::Site::named(#name);
            SITE.#enter()
        }};
    }
    let returned = signature::modifiers_and_return(&function.visibility, &function.signature);
    let name = signature::name(&function.signature);
    let arguments = signature::arguments(&function.signature);
    quote_spanned! {span=> {
        fn here() -> &'static str {
            ::core::any::type_name_of_val(&here)
        }
        static SITE: #krate::__private::Site =
            #krate::__private::Site::new(#returned, here, #name, #arguments);
        SITE.#enter()
    }}
}

/// Tells the compiler what the body's future returns; without it `?` and `return` in the body
/// could not be typed.
/// The idea is that of `#[instrument]` in tracing-attributes.
fn output_hint(output: &ReturnType) -> TokenStream {
    let ReturnType::Type(_, written) = output else {
        return TokenStream::new();
    };
    if matches!(**written, Type::Never(_)) {
        return TokenStream::new();
    }
    let mut output = written.clone();
    InferImplTrait.visit_type_mut(&mut output);
    quote_spanned! {Span::mixed_site()=>
        #[allow(
            clippy::all,
            unreachable_code,
            unused_variables,
            reason = "never run: it only says what the body returns"
        )]
        if false {
            let __baler_output: #output = loop {};
            return __baler_output;
        }
    }
}

/// Replaces `impl Trait` by `_`, for it cannot be the type of a local.
struct InferImplTrait;

impl VisitMut for InferImplTrait {
    fn visit_type_mut(&mut self, written: &mut Type) {
        if matches!(written, Type::ImplTrait(_)) {
            *written = Type::Infer(TypeInfer {
                attrs: Vec::new(),
                underscore_token: syn::token::Underscore::default(),
            });
        } else {
            visit_mut::visit_type_mut(self, written);
        }
    }
}
