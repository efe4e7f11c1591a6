//! Switching recording off and on, at any time.

use baler_monitoring::{TraceContext, probe};

use super::recording::{Recording, reconstruct};

#[probe]
fn outer(mut before: impl FnMut(), after: impl FnOnce()) {
    before();
    inner();
    after();
    inner();
}

#[probe]
fn inner() {}

#[test]
fn nothing_is_recorded_while_off() {
    let recording = Recording::start();
    recording.switch(false);
    outer(|| (), || ());
    assert_eq!(recording.finish(), []);
}

#[test]
fn calls_begun_while_off_stay_unrecorded() {
    let recording = Recording::start();
    recording.switch(false);
    outer(|| (), || recording.switch(true));
    // The second inner call found no trace: it begins its own.
    inner();
    assert_eq!(reconstruct(&recording.finish()), ["inner", "inner"]);
}

#[test]
fn calls_that_end_while_off_leave_the_stack_in_order() {
    let recording = Recording::start();
    outer(|| (), || recording.switch(false));
    recording.switch(true);
    assert_eq!(TraceContext::current().trace_id(), None);
    inner();
    let records = recording.finish();
    let positions: Vec<_> = records
        .iter()
        .map(|record| (record.operation(), record.eoi, record.ess))
        .collect();
    // The first trace was cut off; the second is complete.
    assert_eq!(positions, [("inner", 1, 1), ("inner", 0, 0)]);
    assert_ne!(records[0].trace_id, records[1].trace_id);
}

#[test]
fn a_pause_within_a_call_leaves_no_gap() {
    let recording = Recording::start();
    outer(
        || {
            recording.switch(false);
            inner();
            recording.switch(true);
        },
        || (),
    );
    assert_eq!(reconstruct(&recording.finish()), ["outer(inner inner)"]);
}
