//! Running threads, seen from outside: each thread publishes the stack of its sampled sites, and a
//! sampler reads it.
//!
//! The sampler neither stops a thread nor unwinds its stack, so it cannot crash a program. It sees
//! only operations with a probe.
#![cfg_attr(
    not(test),
    expect(dead_code, reason = "probes do not publish their calls yet")
)]

mod stack;
