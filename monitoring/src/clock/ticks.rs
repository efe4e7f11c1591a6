//! The processor's own counter: the cheapest clock.
//!
//! A reading costs less than half of a reading of the operating system's clock, which itself reads
//! the counter and converts it. Here the collector converts.

#![cfg_attr(
    all(
        any(target_arch = "x86_64", target_arch = "aarch64"),
        target_os = "linux",
        not(miri)
    ),
    expect(
        unsafe_code,
        reason = "the instructions have no safe wrapper in the standard library"
    )
)]

use std::sync::LazyLock;

/// The name of the counter.
pub(crate) const NAME: &str = if cfg!(target_arch = "aarch64") {
    "cntvct"
} else {
    "tsc"
};

/// Whether the counter is a clock: it runs at one rate, never stops, and is the same on all
/// processors. Checked once.
pub(crate) fn is_available() -> bool {
    static IS_AVAILABLE: LazyLock<bool> = LazyLock::new(find_out);
    *IS_AVAILABLE
}

/// Reads the counter; 0 where it is not used.
#[inline(always)]
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
pub(crate) fn read() -> u64 {
    // SAFETY: reads a counter and touches no memory. The kernel may forbid the instruction to a
    // process (PR_SET_TSC), in which case `find_out`'s reading of the clocks, which uses it, would
    // already have failed.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Reads the counter; 0 where it is not used.
#[inline(always)]
#[cfg(all(target_arch = "aarch64", target_os = "linux", not(miri)))]
pub(crate) fn read() -> u64 {
    let ticks;
    // SAFETY: reads the virtual counter and touches neither memory nor flags. Linux lets programs
    // read it. If Linux cannot, its own clocks do not use it, and `find_out` returns `false`.
    unsafe {
        std::arch::asm!(
            "mrs {}, cntvct_el0",
            out(reg) ticks,
            options(nomem, nostack, preserves_flags)
        );
    }
    ticks
}

/// Reads the counter; 0 where it is not used.
#[inline]
#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_os = "linux",
    not(miri)
)))]
pub(crate) fn read() -> u64 {
    0
}

/// The source of Linux's own time.
#[cfg(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_os = "linux",
    not(miri)
))]
fn is_clock_source(name: &str) -> bool {
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == name)
}

/// Asks Linux whether its own clocks use the counter. Linux checks at boot and later that all
/// processors agree, and takes another source if they do not.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
fn find_out() -> bool {
    is_clock_source("tsc")
        && std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|told| {
            let flags = told.lines().find(|line| line.starts_with("flags"));
            let has = |flag| flags.is_some_and(|it| it.split_whitespace().any(|had| had == flag));
            has("constant_tsc") && has("nonstop_tsc")
        })
}

/// Asks Linux whether its own clocks use the counter. By the architecture it runs at one rate,
/// never stops and is one for all processors (Arm Architecture Reference Manual, "The Generic
/// Timer").
#[cfg(all(target_arch = "aarch64", target_os = "linux", not(miri)))]
fn find_out() -> bool {
    is_clock_source("arch_sys_counter")
}

#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_os = "linux",
    not(miri)
)))]
fn find_out() -> bool {
    false
}
