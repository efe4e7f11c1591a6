//! Makes Rust types of the record types in `shop.irl`.

fn main() {
    baler_irl::build::compile("shop.irl");
}
