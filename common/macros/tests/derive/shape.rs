//! What a schema cannot hold is refused: generics, tuples, unions, data in variants.

use baler_common::record::Record;

#[derive(Record)]
struct Generic<T> {
    value: T,
}

#[derive(Record)]
struct Borrowed<'a> {
    text: &'a str,
}

#[derive(Record)]
struct Tuple(u64);

#[derive(Record)]
union Either {
    a: u64,
    b: i64,
}

#[derive(Record)]
enum Message {
    Text(String),
}

#[derive(Record)]
enum Never {}

fn main() {}
