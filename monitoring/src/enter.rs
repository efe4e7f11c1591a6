//! The macro that records a block.

/// Records the rest of the block as a call of the operation with this name.
///
/// ```
/// # fn pack() {}
/// fn ship() {
///     {
///         let _probe = baler_monitoring::enter!("warehouse.pack()");
///         pack();
///     } // The call ends here.
///     // …
/// }
/// ```
///
/// The name is a constant, interned once, and stands where the signature of a function would; see
/// [`Guard`](crate::Guard) for what it returns.
/// Kieker's tools understand names of the form `package.Class.operation(Type, Type)`.
///
/// Behind the name stand the options of [`#[probe]`](macro@crate::probe), with the same meaning:
/// `record = operation`, `duration`, `aggregated` or `events`, `full = 1/n`, `sample = 1/n`,
/// `histogram` and `every = n`.
/// With any of them the guard has another type, but for `record = events` and no `sample`, of which
/// it is an [`EventGuard`](crate::EventGuard), which can be told of an error:
///
/// ```
/// # fn pack() -> Result<(), std::num::ParseIntError> { "1".parse::<u32>().map(drop) }
/// fn ship() {
///     let _probe = baler_monitoring::enter!("warehouse.ship()", record = duration, full = 1/1000);
///     let mut probe = baler_monitoring::enter!("warehouse.pack()", record = events);
///     if let Err(error) = pack() {
///         probe.fail(error);
///     }
/// }
/// ```
///
/// In an asynchronous function the guard must not be held over an `.await`, and the compiler
/// refuses most attempts, for it is not `Send`: make the block an `async fn` with `#[probe]`.
#[macro_export]
macro_rules! enter {
    ($name:expr $(,)?) => {{
        // Items are not hygienic: the name may be a constant of any name, `SITE` as well.
        static __BALER_SITE: $crate::__private::Site = $crate::__private::Site::named($name);
        __BALER_SITE.enter()
    }};
    ($name:expr, $($options:tt)+) => {
        $crate::__enter!([$name] [] [] [] [] [] $($options)+)
    };
}

/// Reads the options of [`enter!`]: name, kind, full, sample, histogram and every, and what is left.
#[doc(hidden)]
#[macro_export]
macro_rules! __enter {
    ($n:tt [] $f:tt $s:tt $h:tt $e:tt record = $kind:ident $(, $($rest:tt)*)?) => {
        $crate::__enter!($n [$kind] $f $s $h $e $($($rest)*)?)
    };
    ($n:tt $k:tt [] $s:tt $h:tt $e:tt full = 1 / $of:literal $(, $($rest:tt)*)?) => {
        $crate::__enter!($n $k [$of] $s $h $e $($($rest)*)?)
    };
    ($n:tt $k:tt $f:tt [] $h:tt $e:tt sample = 1 / $of:literal $(, $($rest:tt)*)?) => {
        $crate::__enter!($n $k $f [$of] $h $e $($($rest)*)?)
    };
    ($n:tt $k:tt $f:tt $s:tt [] $e:tt histogram $(, $($rest:tt)*)?) => {
        $crate::__enter!($n $k $f $s [true] $e $($($rest)*)?)
    };
    ($n:tt $k:tt $f:tt $s:tt $h:tt [] every = $calls:literal $(, $($rest:tt)*)?) => {
        $crate::__enter!($n $k $f $s $h [$calls] $($($rest)*)?)
    };
    ([$name:expr] $k:tt $f:tt $s:tt $h:tt $e:tt) => {{
        static __BALER_SITE: $crate::__private::Site = $crate::__private::Site::named($name);
        $crate::__enter_sampled!($s $k $f $h $e)
    }};
    ($n:tt $k:tt $f:tt $s:tt $h:tt $e:tt $($rest:tt)+) => {
        ::core::compile_error!(concat!(
            "enter! does not understand `", stringify!($($rest)+), "`, or has it twice: behind the \
             name stand `record = kind`, `full = 1/n`, `sample = 1/n`, `histogram` and `every = n`"
        ))
    };
}

/// One call of so many, or all.
#[doc(hidden)]
#[macro_export]
#[cfg(feature = "enable")]
macro_rules! __enter_sampled {
    ([] $($kind:tt)+) => { $crate::__enter_kinds!($($kind)+) };
    ([$of:literal] $($kind:tt)+) => {
        if $crate::__enter_turn!($of) {
            ::core::option::Option::Some($crate::__enter_kinds!($($kind)+))
        } else {
            ::core::option::Option::None
        }
    };
}

/// Whether it is the turn of this call.
#[doc(hidden)]
#[macro_export]
#[cfg(feature = "enable")]
macro_rules! __enter_turn {
    ($of:literal) => {{
        const _: () = assert!($of > 0, "one call in 0 is none: `1/1000`");
        ::std::thread_local! {
            static __BALER_TURNS: $crate::__private::Turns =
                const { $crate::__private::Turns::new() };
        }
        __BALER_SITE.is_turn(&__BALER_TURNS, $of)
    }};
}

/// The guard of a kind, or of two.
#[doc(hidden)]
#[macro_export]
#[cfg(feature = "enable")]
macro_rules! __enter_kinds {
    ([] [] [] []) => { __BALER_SITE.enter() };
    ([operation] [] [] []) => { __BALER_SITE.enter() };
    ([events] [] [] []) => { __BALER_SITE.enter_events() };
    ([duration] [] [] []) => { __BALER_SITE.enter_duration() };
    ([aggregated] [] [] $e:tt) => { $crate::__enter_kinds!([aggregated] [] [false] $e) };
    ([aggregated] [] $h:tt []) => {
        $crate::__enter_kinds!([aggregated] [] $h [::core::primitive::u64::MAX])
    };
    ([aggregated] [] [$histogram:literal] [$every:expr]) => {{
        const _: () = assert!($every > 0, "`every` is at least 1");
        ::std::thread_local! {
            static __BALER_CELL: $crate::__private::CellSlot =
                const { $crate::__private::CellSlot::new() };
        }
        __BALER_SITE.enter_aggregated::<$histogram, { $every }>(&__BALER_CELL)
    }};
    ([duration] [$of:literal] $h:tt $e:tt) => {
        ($crate::__enter_kinds!([duration] [] $h $e), $crate::__enter_full!($of))
    };
    ([aggregated] [$of:literal] $h:tt $e:tt) => {
        ($crate::__enter_kinds!([aggregated] [] $h $e), $crate::__enter_full!($of))
    };
    ($($other:tt)*) => {
        ::core::compile_error!(
            "there is no such kind of record, or these options do not go together: `record` is \
             `operation`, `duration`, `aggregated` or `events`; `full` goes with `duration` and \
             `aggregated`, `histogram` and `every` with `aggregated`"
        )
    };
}

/// The full record of one call of so many.
#[doc(hidden)]
#[macro_export]
#[cfg(feature = "enable")]
macro_rules! __enter_full {
    ($of:literal) => {
        if $crate::__enter_turn!($of) {
            ::core::option::Option::Some(__BALER_SITE.enter())
        } else {
            ::core::option::Option::None
        }
    };
}

/// Without the feature `enable`: nothing, of the type that is used as with it.
#[doc(hidden)]
#[macro_export]
#[cfg(not(feature = "enable"))]
macro_rules! __enter_sampled {
    ([] [events] $($rest:tt)*) => {
        __BALER_SITE.enter_events()
    };
    ([] $($rest:tt)*) => {
        __BALER_SITE.enter()
    };
    ([$of:literal] [events] $($rest:tt)*) => {
        ::core::option::Option::Some(__BALER_SITE.enter_events())
    };
    ([$of:literal] $($rest:tt)*) => {
        ::core::option::Option::Some(__BALER_SITE.enter())
    };
}
