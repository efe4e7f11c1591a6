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

#[probe(record = trace)]
fn no_record() {}

#[probe(full = 1/10)]
fn full_anyway() {}

#[probe(record = duration, histogram)]
fn histogram_of_what() {}

#[probe(sample = 2/10)]
fn two_of_ten() {}

#[probe(sample = 1/0)]
fn none() {}

#[probe(record = events, full = 1/10)]
fn full_events() {}

#[probe(record = duration, busy)]
async fn busy_without_record() {}

#[probe(err)]
fn error_without_event() -> Result<(), String> {
    Ok(())
}

fn main() {}
