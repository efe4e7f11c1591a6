//! An unknown attribute is named with the nearest one.

use baler_common::record::Record;

#[derive(Record)]
struct Order {
    #[record(renam = "buyer")]
    customer: String,
}

#[derive(Record)]
#[record(rename_all = "camelcase")]
struct Line {
    article: u64,
}

fn main() {}
