use baler_monitoring::probe;

#[probe(nmae = "x")]
fn unknown() {}

#[probe(name = "")]
fn empty() {}

#[probe(name = "a", name = "b")]
fn twice() {}

#[probe(name)]
fn no_value() {}

#[probe(name = 3)]
fn no_text() {}

#[probe("x")]
fn no_key() {}

#[probe(skip, name = "x")]
fn skipped() {}

fn main() {}
