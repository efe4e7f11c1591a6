//! Every kind of function, and every way out of it.

use std::panic::{AssertUnwindSafe, catch_unwind};

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
