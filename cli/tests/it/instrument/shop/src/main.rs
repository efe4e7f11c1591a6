//! A program that has every kind of function, and calls each once. `//!` lines stay first.

mod rules;
#[path = "other_folder/stock_file.rs"]
mod stock;

use std::collections::HashMap as Map;
use std::fmt;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use rules::{Priced, Register as Till};

macro_rules! made {
    ($name:ident) => {
        pub struct $name;
    };
}
made!(Made);

impl Made {
    fn made(&self) {}
}

/// Documented.
#[inline(always)]
#[must_use]
pub fn documented(r#in: &str) -> Result<u32, std::num::ParseIntError> {
    r#in.parse()
}

fn borrowed<'a, T: ?Sized>(text: &'a T, _map: &mut Map<u8, Vec<[u8; 4]>>) -> &'a T {
    text
}

fn opaque(numbers: impl Iterator<Item = u32>, _f: fn(u8) -> u8) -> impl Iterator<Item = u32> {
    numbers.map(|it| it + 1)
}

fn tuples((a, _b): (u8, u8), [c, ..]: [u8; 2]) -> (u8, u8) {
    (a, c)
}

unsafe fn not_safe(pointer: *const u8) -> u8 {
    unsafe { *pointer }
}

fn r#match() {}

async fn later(text: &str) -> usize {
    async fn inner() -> usize {
        1
    }
    text.len() + inner().await
}

fn outer() -> u32 {
    use local::Deep;
    mod local {
        pub struct Deep;
        impl Deep {
            pub fn deep(&self) -> u32 {
                1
            }
        }
    }
    struct Local;
    impl Local {
        fn of_local(&self) -> u32 {
            fn within() -> u32 {
                2
            }
            within()
        }
    }
    let closure = || {
        fn in_closure() -> u32 {
            3
        }
        in_closure()
    };
    Deep.deep() + Local.of_local() + closure()
}

const fn fixed() -> u32 {
    7
}

extern "C" fn foreign() {}

impl fmt::Display for Till<u8> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str("till") }
}

impl Priced for u8 {
    fn price(&self) -> u32 { 1 }
}

impl Priced for &str {
    fn price(&self) -> u32 { 2 }
}

impl Priced for [u8] {
    fn price(&self) -> u32 { 3 }
}

impl<T> Priced for (T, T) {
    fn price(&self) -> u32 { 4 }
}

impl Priced for String {
    fn price(&self) -> u32 { 5 }
}

impl Priced for Map<u8, u8> {
    fn price(&self) -> u32 { 6 }
}

impl Priced for dyn Fn(u8) -> u8 {
    fn price(&self) -> u32 { 7 }
}

impl Priced for fn() {
    fn price(&self) -> u32 { 8 }
}

impl<T: Priced> Priced for Vec<T> {
    fn price(&self) -> u32 { self.iter().map(Priced::price).sum() }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

fn use_all() {
    Made.made();
    let _ = documented("1");
    borrowed("x", &mut Map::new());
    opaque([1].into_iter(), |it| it).for_each(drop);
    tuples((1, 2), [3, 4]);
    unsafe { not_safe(&1) };
    r#match();
    block_on(later("x"));
    outer();
    fixed();
    foreign();
    let till = Till::new(1_u8);
    let _ = till.to_string();
    till.price();
    till.discount();
    till.count();
    till.close();
    1_u8.price();
    "x".price();
    [1_u8][..].price();
    (1, 2).price();
    String::new().price();
    Map::<u8, u8>::new().price();
    let boxed: Box<dyn Fn(u8) -> u8> = Box::new(|it| it);
    boxed.price();
    (r#match as fn()).price();
    vec![1_u8].price();
    stock::Stock::default().take(1);
    stock::shelf::top();
}

fn main() {
    let to = std::env::args().nth(1).expect("an address");
    let controller = baler::Controller::to(&to).expect("an address");
    controller.install();
    use_all();
    println!("{}", controller.shutdown(std::time::Duration::from_secs(5)));
}
