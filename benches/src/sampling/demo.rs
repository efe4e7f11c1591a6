//! The article's program: calls of known length, without probes and with several kinds of them.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use baler_monitoring::probe;
use baler_rig::clock::nanos;

/// The calls of the mixed demo, in milliseconds.
pub(super) const CALLS: [u64; 9] = [100, 1, 100, 500, 1, 100, 1, 50, 50];

/// The operation that takes this number of milliseconds.
pub(super) fn method(ms: u64) -> String {
    format!("void Demo.method{ms}ms()")
}

/// A copy of the program.
#[derive(Debug)]
pub(super) struct Demo {
    /// Makes [`CALLS`]. Returns the length of each call in milliseconds, and its true time in
    /// nanoseconds: each method reads the clock itself.
    pub(super) mixed: fn() -> Vec<(u64, u64)>,
    /// Calls `method0ms` this often.
    pub(super) mass: fn(u64),
    pub(super) method_0ms: fn(),
}

/// Makes a copy of the program. Its methods have the first probe, and their callers the other one.
macro_rules! demo {
    ($name:ident $(methods probe($($option:tt)*))? $(callers $caller:ident)?) => {
        pub(super) mod $name {
            use super::*;

            pub(in super::super) const DEMO: Demo = Demo {
                mixed: run_code,
                mass: mass_demo,
                method_0ms,
            };

            $(#[$caller(name = "void Demo.runCode()")])?
            fn run_code() -> Vec<(u64, u64)> {
                let call = |ms: u64| match ms {
                    1 => method_1ms(),
                    50 => method_50ms(),
                    100 => method_100ms(),
                    _ => method_500ms(),
                };
                CALLS.map(|ms| (ms, call(ms))).to_vec()
            }

            $(#[$caller(name = "void DemoRunner.massDemo()")])?
            fn mass_demo(calls: u64) {
                for _ in 0..calls {
                    method_0ms();
                }
            }

            $(#[probe(name = "void Demo.method0ms()", $($option)*)])?
            #[inline(never)]
            fn method_0ms() {
                steps();
            }

            $(#[probe(name = "void Demo.method1ms()", $($option)*)])?
            fn method_1ms() -> u64 {
                busy(1)
            }

            $(#[probe(name = "void Demo.method50ms()", $($option)*)])?
            fn method_50ms() -> u64 {
                sleep(50)
            }

            $(#[probe(name = "void Demo.method100ms()", $($option)*)])?
            fn method_100ms() -> u64 {
                busy(100)
            }

            $(#[probe(name = "void Demo.method500ms()", $($option)*)])?
            fn method_500ms() -> u64 {
                busy(500)
            }
        }
    };
}

demo!(plain);
demo!(operation methods probe());
demo!(aggregated methods probe(record = aggregated));
demo!(sampled methods probe() callers probe);

/// All copies share this machine code: two copies could differ by their alignment.
#[inline(never)]
fn steps() {
    for step in 0..50 {
        black_box(step);
    }
}

fn busy(ms: u64) -> u64 {
    let begin = Instant::now();
    loop {
        let time = nanos(begin.elapsed());
        if time >= ms * 1_000_000 {
            return time;
        }
        std::hint::spin_loop();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a method of the article's program sleeps"
)]
fn sleep(ms: u64) -> u64 {
    let begin = Instant::now();
    thread::sleep(Duration::from_millis(ms));
    nanos(begin.elapsed())
}
