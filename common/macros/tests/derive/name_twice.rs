//! Names are unique in a type, aliases included.

use baler_common::record::Record;

#[derive(Record)]
struct Order {
    customer: String,
    #[record(rename = "customer")]
    buyer: String,
}

#[derive(Record)]
struct Line {
    #[record(alias = "count")]
    amount: u64,
    count: u64,
}

#[derive(Record)]
enum Status {
    Open,
    #[record(rename = "Open")]
    Opened,
}

fn main() {}
