//! There is one timestamp, of 64 bits.

use baler_common::record::Record;

#[derive(Record)]
struct Twice {
    #[record(timestamp)]
    tin: i64,
    #[record(timestamp)]
    tout: i64,
}

#[derive(Record)]
struct Both {
    #[record(timestamp, nanos)]
    tin: i64,
}

#[derive(Record)]
struct Empty {
    #[record(rename = "")]
    tin: i64,
}

fn main() {}
