//! A parsed function and its options -> the function with its probe.

use baler_instrument::signature::{argument_types, modifiers_and_return, operation_name};
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{FnArg, Ident, PatIdent, Path, ReturnType, Type, TypeInfer};

use super::function::Function;
use super::options::{Kind, Options};

/// Expands the function, with its probe around the body.
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
    let body = if signature.asyncness.is_some() && options.has_place_in_trace() {
        async_body(options, function)
    } else if options.is_of_every_call() && function.can_be_a_closure() {
        closure_body(options, function)
    } else {
        guarded_body(options, function)
    };
    // The body cannot see the locals below, whatever names it uses.
    let span = Span::mixed_site();
    quote_spanned! {span=>
        #(#attributes)*
        #visibility #signature {
            #(#inner_attributes)*
            #body
        }
    }
}

/// The body as a closure, which is called without a guard while nothing is recorded. Otherwise a
/// guard would live during the body, and be checked after it.
fn closure_body(options: &Options, function: &Function) -> TokenStream {
    let span = Span::mixed_site();
    let krate = options.crate_path();
    let statics = site_and_statics(options, function, &krate);
    let guard = main_guard(options);
    let output = match &function.signature.output {
        ReturnType::Default => quote_spanned!(span=> -> ()),
        output @ ReturnType::Type(..) => closure_output(output),
    };
    let arguments = in_order_of_drop(function);
    let body = &function.body;
    quote_spanned! {span=>
        let (__baler_site, __baler_enter) = {
            #statics
            (&__BALER_SITE, || #guard)
        };
        #krate::__private::run(__baler_site, __baler_enter, move || #output {
            #arguments
            #body
        })
    }
}

/// A guard in front of the body. It notices every way out of the body.
fn guarded_body(options: &Options, function: &Function) -> TokenStream {
    let span = Span::mixed_site();
    let krate = options.crate_path();
    let guards = guards(options);
    let statics = site_and_statics(options, function, &krate);
    let body = &function.body;
    if options.kind == Kind::Events && (options.err || function.can_be_a_closure()) {
        let hint = closure_output(&function.signature.output);
        let arguments = in_order_of_drop(function);
        // Only a sampled call has no guard outside its turn.
        let probe = match options.sample {
            Some(_) => quote_spanned!(span=> __baler_probe.as_mut()),
            None => quote_spanned!(span=> ::core::option::Option::Some(&mut __baler_probe)),
        };
        let look = options.err.then(|| {
            quote_spanned! {span=>
                if let ::core::option::Option::Some(__baler_probe) = #probe {
                    __baler_probe.look_at(&__baler_output);
                }
            }
        });
        return quote_spanned! {span=>
            let mut __baler_probe = {
                #statics
                #guards
            };
            let __baler_output = #krate::__private::run_events(#probe, move || #hint {
                #arguments
                #body
            });
            #look
            __baler_output
        };
    }
    quote_spanned! {span=>
        let __baler_probe = {
            #statics
            #guards
        };
        #body
    }
}

/// One in a number of calls. Each thread takes turns of its own.
struct Share {
    /// The name of the static that counts the calls of a thread.
    turns: Ident,
    of: u32,
}

impl Share {
    /// Returns the share of the calls that have a record; `None` if all have one.
    fn sampled(options: &Options) -> Option<Self> {
        options.sample.map(|of| Self::new("__BALER_SAMPLE", of))
    }

    /// Returns the share of the calls that have a full record besides.
    fn with_full_record(options: &Options) -> Option<Self> {
        options.full.map(|of| Self::new("__BALER_FULL", of))
    }

    fn new(turns: &str, of: u32) -> Self {
        let turns = Ident::new(turns, Span::mixed_site());
        Self { turns, of }
    }

    fn statics(&self, krate: &Path) -> TokenStream {
        let turns = &self.turns;
        quote_spanned! {Span::mixed_site()=>
            ::std::thread_local! {
                static #turns: #krate::__private::Turns = const { #krate::__private::Turns::new() };
            }
        }
    }

    /// Chooses between the value in a call of this share and the value in other calls.
    fn choose(&self, in_turn: &TokenStream, otherwise: &TokenStream) -> TokenStream {
        let Self { turns, of } = self;
        quote_spanned! {Span::mixed_site()=>
            if __BALER_SITE.is_turn(&#turns, #of) {
                #in_turn
            } else {
                #otherwise
            }
        }
    }

    /// The guard in a call of this share, as an option.
    fn guard(&self, guard: &TokenStream) -> TokenStream {
        let span = Span::mixed_site();
        self.choose(
            &quote_spanned!(span=> ::core::option::Option::Some(#guard)),
            &quote_spanned!(span=> ::core::option::Option::None),
        )
    }
}

/// The guard of a call, and the guard of its full record; no guard if it is not the call's turn.
fn guards(options: &Options) -> TokenStream {
    let span = Span::mixed_site();
    let mut guards = main_guard(options);
    if let Some(share) = Share::with_full_record(options) {
        let full = share.guard(&quote_spanned!(span=> __BALER_SITE.enter()));
        guards = quote_spanned!(span=> (#guards, #full));
    }
    match Share::sampled(options) {
        Some(share) => share.guard(&guards),
        None => guards,
    }
}

/// The guard of a block: the expansion of `enter!` with options.
pub(crate) fn block_guard(options: &Options, name: &TokenStream) -> TokenStream {
    let span = Span::mixed_site();
    let krate = options.crate_path();
    if cfg!(feature = "enable") {
        // A guard of durations may be held over an `.await`, and end on another thread.
        let can_move = true;
        let site = named_site(name, &krate, &unsampled(options, can_move));
        let statics = statics(options, &krate);
        let guards = guards(options);
        return quote_spanned!(span=> { #site #statics #guards });
    }
    // Nothing, but of the same type as with the feature.
    let site = named_site(name, &krate, &TokenStream::new());
    let guard = match options.kind {
        Kind::Events => quote_spanned!(span=> __BALER_SITE.enter_events()),
        _ => quote_spanned!(span=> __BALER_SITE.enter()),
    };
    let guard = match options.sample {
        Some(_) => quote_spanned!(span=> ::core::option::Option::Some(#guard)),
        None => guard,
    };
    quote_spanned!(span=> { #site #guard })
}

/// Makes a closure around the body capture the arguments that it uses, the last one first. Captured
/// variables are dropped in the order of their capture. So the arguments are dropped in the same
/// order as in the function, after the locals of the body.
///
/// An argument that the body does not use stays with the function. So the compiler still reports
/// that it is unused, unless its name shows that this is intended.
fn in_order_of_drop(function: &Function) -> TokenStream {
    let span = Span::mixed_site();
    let mut names = Names(Vec::new());
    for argument in &function.signature.inputs {
        match argument {
            FnArg::Receiver(receiver) => names.0.push(Ident::from(receiver.self_token)),
            FnArg::Typed(argument) => names.visit_pat(&argument.pat),
        }
    }
    let is_captured =
        |name: &&Ident| name.to_string().starts_with('_') || is_named(&function.body, name);
    let names: Vec<_> = names.0.iter().rev().filter(is_captured).collect();
    if names.len() < 2 {
        return TokenStream::new();
    }
    quote_spanned!(span=> let _ = (#(&#names,)*);)
}

/// The names bound by a pattern.
struct Names(Vec<Ident>);

impl<'ast> Visit<'ast> for Names {
    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        self.0.push(pattern.ident.clone());
        visit::visit_pat_ident(self, pattern);
    }
}

/// Whether a name occurs anywhere in these tokens, also as an argument in a text.
fn is_named(tokens: &TokenStream, name: &Ident) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == *name,
        TokenTree::Group(group) => is_named(&group.stream(), name),
        // `println!("{name}")`
        TokenTree::Literal(literal) => literal.to_string().contains(&format!("{{{name}")),
        TokenTree::Punct(_) => false,
    })
}

/// Returns the return type of a closure around the body, as far as it can be written.
fn closure_output(output: &ReturnType) -> TokenStream {
    let ReturnType::Type(arrow, written) = output else {
        return TokenStream::new();
    };
    let mut output = written.clone();
    InferImplTrait.visit_type_mut(&mut output);
    quote_spanned!(Span::mixed_site()=> #arrow #output)
}

/// The guard of a synchronous call, or of one without a place in its trace.
fn main_guard(options: &Options) -> TokenStream {
    let span = Span::mixed_site();
    match options.kind {
        Kind::Operation => quote_spanned!(span=> __BALER_SITE.enter()),
        Kind::Events => quote_spanned!(span=> __BALER_SITE.enter_events()),
        Kind::Duration => quote_spanned!(span=> __BALER_SITE.enter_duration()),
        Kind::Aggregated => {
            let histogram = options.histogram;
            quote_spanned!(span=> __BALER_SITE.enter_aggregated::<#histogram>(&__BALER_CELL))
        }
    }
}

/// The body becomes a future of its own. Every poll of it takes place in the call's trace.
///
/// A wrapper type around the future would need a pin projection, and so unsafe code or another
/// crate. A pinned local needs neither and holds the body once. Only the arguments are stored
/// twice, because the compiler does not reuse their original place.
fn async_body(options: &Options, function: &Function) -> TokenStream {
    let span = Span::mixed_site();
    let krate = options.crate_path();
    let enter = match options.kind {
        Kind::Events => "enter_events_async",
        _ if options.busy => "enter_async_busy",
        _ => "enter_async",
    };
    let enter = Ident::new(enter, span);
    let inactive = quote_spanned!(span=> #krate::__private::AsyncCall::inactive());
    let mut call = quote_spanned!(span=> __BALER_SITE.#enter());
    if let Some(share) = Share::with_full_record(options) {
        call = share.choose(&call, &inactive);
    }
    // Without a record beside the place in the trace there is no guard.
    let (main, no_main) = match options.kind {
        Kind::Duration | Kind::Aggregated => {
            let main = main_guard(options);
            (
                quote_spanned!(span=> ::core::option::Option::Some(#main)),
                quote_spanned!(span=> ::core::option::Option::None),
            )
        }
        Kind::Events | Kind::Operation => (quote_spanned!(span=> ()), quote_spanned!(span=> ())),
    };
    let mut guards = quote_spanned!(span=> (#main, #call));
    if let Some(share) = Share::sampled(options) {
        guards = share.choose(&guards, &quote_spanned!(span=> (#no_main, #inactive)));
    }
    let look = options
        .err
        .then(|| quote_spanned!(span=> __baler_call.look_at(&__baler_output);));
    let statics = site_and_statics(options, function, &krate);
    let output = output_hint(&function.signature.output, &krate);
    let body = &function.body;
    quote_spanned! {span=>
        let (__baler_probe, mut __baler_call) = {
            #statics
            #guards
        };
        let mut __baler_body = ::core::pin::pin!(async move {
            #output
            #body
        });
        let __baler_output = ::core::future::poll_fn(|__baler_context| {
            __baler_call.poll(__baler_body.as_mut(), __baler_context)
        })
        .await;
        #look
        __baler_output
    }
}

/// The thread-local state beside a call site.
fn statics(options: &Options, krate: &Path) -> TokenStream {
    let span = Span::mixed_site();
    let sample = Share::sampled(options).map(|share| share.statics(krate));
    let full = Share::with_full_record(options).map(|share| share.statics(krate));
    let cell = matches!(options.kind, Kind::Aggregated).then(|| {
        quote_spanned! {span=>
            ::std::thread_local! {
                static __BALER_CELL: #krate::__private::CellSlot =
                    const { #krate::__private::CellSlot::new() };
            }
        }
    });
    quote_spanned!(span=> #sample #full #cell)
}

/// The call site of a function, and the thread-local state beside it.
///
/// `here` is a function inside the probed one, so its type name contains the path of module, type
/// and function. A macro that sees only one method cannot know that path.
fn site_and_statics(options: &Options, function: &Function, krate: &Path) -> TokenStream {
    let span = Span::mixed_site();
    let statics = statics(options, krate);
    let unsampled = unsampled(options, function.signature.asyncness.is_some());
    if let Some(name) = &options.name {
        let site = named_site(&name.to_token_stream(), krate, &unsampled);
        return quote_spanned!(span=> #site #statics);
    }
    let returned = modifiers_and_return(&function.visibility, &function.signature);
    let name = operation_name(&function.signature);
    let arguments = argument_types(&function.signature);
    quote_spanned! {span=>
        fn here() -> &'static str {
            ::core::any::type_name_of_val(&here)
        }
        static __BALER_SITE: #krate::__private::Site =
            #krate::__private::Site::new(#returned, here, #name, #arguments) #unsampled;
        #statics
    }
}

/// A call site with an explicit signature. Items are not hygienic: the name may be a constant of
/// any name.
fn named_site(name: &TokenStream, krate: &Path, unsampled: &TokenStream) -> TokenStream {
    quote_spanned! {Span::mixed_site()=>
        static __BALER_SITE: #krate::__private::Site =
            #krate::__private::Site::named(#name) #unsampled;
    }
}

/// Hides a site from the sampler of threads, unless each of its calls ends on the thread on which
/// it began, or is polled by the call's own future.
fn unsampled(options: &Options, can_move: bool) -> TokenStream {
    let is_timed = matches!(options.kind, Kind::Duration | Kind::Aggregated);
    if options.sample.is_none() && options.full.is_none() && !(is_timed && can_move) {
        return TokenStream::new();
    }
    quote_spanned!(Span::mixed_site()=> .unsampled())
}

/// Gives the compiler the output type of the body's future. Without it `?` and `return` in the body
/// could not be typed. The idea comes from `#[instrument]` in tracing-attributes.
fn output_hint(output: &ReturnType, krate: &Path) -> TokenStream {
    let ReturnType::Type(_, written) = output else {
        return TokenStream::new();
    };
    if matches!(**written, Type::Never(_)) {
        return TokenStream::new();
    }
    let mut output = written.clone();
    InferImplTrait.visit_type_mut(&mut output);
    quote_spanned! {Span::mixed_site()=>
        if false {
            return #krate::__private::never_called::<#output>();
        }
    }
}

/// Replaces `impl Trait` by `_`, because it cannot be the type of a local.
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
