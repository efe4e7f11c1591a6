//! The program `baler`.

fn main() {}
