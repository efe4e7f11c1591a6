//! Every kind of function, and every way to leave it.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

use baler_monitoring::{TestClock, enter, probe};

use super::recording::{Recording, reconstruct};

#[probe]
fn work(clock: &TestClock, nanoseconds: i64) {
    clock.advance(nanoseconds);
}

#[test]
fn a_call_is_recorded_with_exact_times() {
    let recording = Recording::start();
    work(&recording.clock, 250);
    let records = recording.finish();
    assert_eq!(records.len(), 1);
    let record = &records[0];
    assert_eq!((record.tin, record.tout), (1_000, 1_250));
    assert_eq!(record.logged, Some(1_250));
    assert_eq!((record.eoi, record.ess), (0, 0));
    assert_eq!(record.session_id, "<no-session-id>");
    assert_eq!(
        record.operation_signature,
        "void it.probe.functions.work(TestClock, i64)"
    );
    assert_eq!(record.hostname, "test-host");
    assert!(record.trace_id >= 0);
}

#[test]
fn a_clock_set_back_gives_no_negative_duration() {
    let recording = Recording::start();
    work(&recording.clock, -500);
    let records = recording.finish();
    assert_eq!((records[0].tin, records[0].tout), (1_000, 1_000));
}

#[probe]
fn search(found: bool) -> Option<u32> {
    if found {
        return Some(1);
    }
    None
}

#[probe]
fn parse(text: &str) -> Result<u32, std::num::ParseIntError> {
    let number: u32 = text.parse()?;
    search(number > 1);
    Ok(number)
}

#[test]
fn early_return_and_question_mark_end_the_call() {
    let recording = Recording::start();
    assert_eq!(search(true), Some(1));
    assert_eq!(search(false), None);
    assert!(parse("x").is_err());
    assert_eq!(parse("2"), Ok(2));
    let trees = reconstruct(&recording.finish());
    assert_eq!(trees, ["parse", "parse(search)", "search", "search"]);
}

#[probe]
fn fail(clock: &TestClock) -> ! {
    clock.advance(7);
    panic!("on purpose");
}

#[probe]
fn survive(clock: &TestClock) -> bool {
    let failed = catch_unwind(AssertUnwindSafe(|| fail(clock))).is_err();
    work(clock, 1);
    failed
}

#[test]
fn a_panic_is_recorded_and_leaves_the_stack_in_order() {
    let recording = Recording::start();
    assert!(survive(&recording.clock));
    assert!(catch_unwind(AssertUnwindSafe(|| fail(&recording.clock))).is_err());
    work(&recording.clock, 1);
    let records = recording.finish();
    assert_eq!(
        reconstruct(&records),
        ["fail", "survive(fail work)", "work"]
    );
    assert_eq!(records[0].tout - records[0].tin, 7);
}

/// The attributes, the visibility and the documentation of a function stay.
#[inline(never)]
#[must_use]
#[probe]
pub(crate) fn longest<'a, T>(left: &'a [T], right: &'a [T]) -> &'a [T]
where
    T: PartialEq,
{
    #![expect(clippy::if_not_else, reason = "an inner attribute stays in front")]
    if left.len() != right.len() {
        if left.len() > right.len() {
            left
        } else {
            right
        }
    } else {
        left
    }
}

#[probe]
fn counter(mut start: u32) -> impl FnMut() -> u32 {
    move || {
        start += 1;
        start
    }
}

#[probe]
fn boxed((left, right): (u8, u8), [first, ..]: [u8; 3]) -> Box<dyn Fn() -> u8> {
    Box::new(move || left + right + first)
}

#[probe]
unsafe fn dangerous(number: u32) -> u32 {
    number + 1
}

#[probe]
extern "C" fn double(number: u32) -> u32 {
    number * 2
}

#[probe]
#[track_caller]
fn line() -> u32 {
    std::panic::Location::caller().line()
}

#[test]
fn every_kind_of_function_works() {
    let recording = Recording::start();
    assert_eq!(longest(&[1], &[2, 3]), [2, 3]);
    assert_eq!(longest(&["a"], &["b"]), ["a"]);
    let mut next = counter(1);
    assert_eq!((next(), next()), (2, 3));
    assert_eq!(boxed((1, 2), [3, 4, 5])(), 6);
    // SAFETY: the function is not as dangerous as it says.
    #[expect(unsafe_code, reason = "an unsafe function is called")]
    let nine = unsafe { dangerous(8) };
    assert_eq!(nine, 9);
    assert_eq!(double(4), 8);
    assert_eq!(line(), line!());
    let trees = reconstruct(&recording.finish());
    assert_eq!(
        trees,
        [
            "boxed",
            "counter",
            "dangerous",
            "double",
            "line",
            "longest",
            "longest"
        ]
    );
}

struct Cart {
    items: Vec<u32>,
}

impl Cart {
    #[probe]
    fn new() -> Self {
        Self { items: Vec::new() }
    }

    #[probe]
    fn add(&mut self, item: u32) -> &mut Self {
        self.items.push(item);
        self
    }

    #[probe]
    fn sum(self: &std::rc::Rc<Self>) -> u32 {
        self.items.iter().sum()
    }

    #[probe]
    fn into_items(self) -> Vec<u32> {
        self.items
    }
}

#[test]
fn methods_work_with_every_form_of_self() {
    let recording = Recording::start();
    let mut cart = Cart::new();
    cart.add(1).add(2);
    let cart = std::rc::Rc::new(cart);
    assert_eq!(cart.sum(), 3);
    assert_eq!(std::rc::Rc::into_inner(cart).unwrap().into_items(), [1, 2]);
    let records = recording.finish();
    let operations: Vec<_> = records.iter().map(|record| record.operation()).collect();
    assert_eq!(operations, ["new", "add", "add", "sum", "into_items"]);
}

#[test]
fn a_block_is_recorded_under_its_name() {
    let recording = Recording::start();
    {
        let _probe = enter!("warehouse.pack()");
        work(&recording.clock, 5);
    }
    work(&recording.clock, 1);
    let records = recording.finish();
    assert_eq!(reconstruct(&records), ["pack(work)", "work"]);
    assert_eq!(records[1].operation_signature, "warehouse.pack()");
    assert_eq!(records[1].tout, 1_005);
}

#[test]
fn the_name_of_a_block_may_be_a_constant_of_any_name() {
    const SITE: &str = "warehouse.site()";
    let recording = Recording::start();
    drop(enter!(SITE));
    assert_eq!(recording.finish()[0].call.operation_signature, SITE);
}

macro_rules! probed {
    ($name:ident, $body:block) => {
        #[probe]
        fn $name() -> u8 $body
    };
}

probed!(from_a_macro, { 3 });

#[test]
fn a_function_written_by_a_macro_is_recorded() {
    let recording = Recording::start();
    assert_eq!(from_a_macro(), 3);
    assert_eq!(reconstruct(&recording.finish()), ["from_a_macro"]);
}

/// Adds its name to the list when it is dropped.
struct Told<'a>(&'static str, &'a RefCell<Vec<&'static str>>);

impl std::fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.1.borrow_mut().push(self.0);
    }
}

/// Without and with a probe; each uses its arguments in another order than their declaration.
macro_rules! dropping {
    ($(#[$attribute:meta])* $name:ident) => {
        $(#[$attribute])*
        fn $name<'a>(
            first: Told<'a>,
            _second: Told<'a>,
            (third, fourth): (Told<'a>, Told<'a>),
            moved: Told<'a>,
            fails: bool,
        ) {
            drop(moved);
            let _local = Told("local", first.1);
            assert!(third.0.len() + first.0.len() > 3);
            assert!(!fails, "on purpose: {fourth}");
        }
    };
}

dropping!(plain_drops);
dropping!(
    #[probe]
    probed_drops
);
dropping!(
    #[probe(record = duration)]
    timed_drops
);
dropping!(
    #[probe(record = aggregated)]
    aggregated_drops
);

#[test]
fn arguments_are_dropped_in_the_order_of_a_function_without_a_probe() {
    type Drops<'a> = fn(Told<'a>, Told<'a>, (Told<'a>, Told<'a>), Told<'a>, bool);
    let recording = Recording::start();
    let order = |fails: bool, drops: for<'a> fn(&'a RefCell<Vec<&'static str>>, bool)| {
        let told = RefCell::new(Vec::new());
        let result = catch_unwind(AssertUnwindSafe(|| drops(&told, fails)));
        assert_eq!(result.is_err(), fails);
        told.into_inner()
    };
    macro_rules! called {
        ($function:ident) => {
            |told, fails| {
                let function: Drops<'_> = $function;
                let make = |name| Told(name, told);
                let pair = (make("third"), make("fourth"));
                function(make("first"), make("second"), pair, make("moved"), fails);
            }
        };
    }
    for fails in [false, true] {
        let expected = order(fails, called!(plain_drops));
        assert_eq!(expected.len(), 6);
        assert_eq!(order(fails, called!(probed_drops)), expected);
        assert_eq!(order(fails, called!(timed_drops)), expected);
        assert_eq!(order(fails, called!(aggregated_drops)), expected);
    }
    drop(recording);
    assert_eq!(
        order(false, called!(probed_drops)),
        order(false, called!(plain_drops))
    );
}

/// As the names of the statics of a call site might be.
const SAMPLE: &str = "functions.constant()";

fn named_by_a_constant() {
    let _probe = enter!(SAMPLE, sample = 1 / 1);
}

#[test]
fn a_name_may_be_a_constant_of_any_name() {
    let recording = Recording::start();
    named_by_a_constant();
    assert_eq!(reconstruct(&recording.finish()), ["constant"]);
}

/// Code that a closure around the body could refuse.
mod closures {
    use super::*;

    #[probe]
    pub(super) fn first_of(list: &mut Vec<u8>) -> Option<&mut u8> {
        if list.is_empty() {
            list.push(1);
        }
        list.first_mut()
    }

    #[probe]
    pub(super) fn longest<'a>(mut one: &'a str, other: &'a str) -> &'a str {
        if other.len() > one.len() {
            one = other;
        }
        return one;
    }

    #[probe]
    pub(super) fn counting(mut from: u32) -> impl Iterator<Item = u32> {
        from += 1;
        (from..).step_by(2)
    }

    #[probe]
    pub(super) fn boxed(text: &str) -> Box<dyn Fn() -> usize + '_> {
        Box::new(move || text.len())
    }

    #[probe]
    pub(super) fn deep<T: Copy>(depth: u32, value: T) -> T {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        // There is one variable, even if the body is called in several places.
        assert_eq!(CALLS.fetch_add(1, Ordering::Relaxed), 3 - depth);
        if depth == 0 {
            value
        } else {
            deep(depth - 1, value)
        }
    }

    #[probe]
    #[track_caller]
    pub(super) fn called_from() -> u32 {
        std::panic::Location::caller().line()
    }

    #[probe]
    pub(super) fn formatted(text: String, number: u32) -> String {
        format!("{number}{text}")
    }

    pub(super) struct Holder(pub(super) Vec<u8>);

    #[probe]
    impl Holder {
        pub(super) fn last(&mut self) -> &mut u8 {
            self.0.last_mut().unwrap()
        }

        pub(super) fn into(mut self, more: u8) -> Vec<u8> {
            self.0.push(more);
            self.0
        }
    }
}

#[test]
fn a_probe_changes_neither_types_nor_borrows_of_its_function() {
    let recording = Recording::start();
    let mut list = Vec::new();
    *closures::first_of(&mut list).unwrap() += 1;
    assert_eq!(list, [2]);
    assert_eq!(closures::longest("one", "three"), "three");
    assert_eq!(closures::counting(1).take(2).collect::<Vec<_>>(), [2, 4]);
    assert_eq!(closures::boxed("four")(), 4);
    assert_eq!(closures::deep(3, 'x'), 'x');
    assert_eq!(closures::called_from(), line!());
    assert_eq!(closures::formatted("x".to_owned(), 1), "1x");
    let mut holder = closures::Holder(vec![1]);
    *holder.last() += 1;
    assert_eq!(holder.into(3), [2, 3]);
    assert_eq!(recording.finish().len(), 12);
}
