//! Any bytes, taken as a chunk, are decoded and written by every sink within limited memory.
#![no_main]

#[path = "../../tests/memory/bodies.rs"]
mod bodies;
#[path = "../../../common/tests/it/counting.rs"]
mod counting;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::sinks(bytes));
