use super::*;

fn lost(records: u32) -> Event {
    Event::Lost {
        sequence: 0,
        records,
        reason: LossReason::Undelivered,
        error: None,
    }
}

#[test]
fn losses_of_one_reason_are_told_together() {
    let watch = MediumWatch::default();
    (0..441).for_each(|_| watch.note(&lost(10)));
    let state = watch.lock();
    let told = &state.lost[&LossReason::Undelivered];
    assert_eq!(
        (state.lost.len(), told.chunks, told.records),
        (1, 441, 4_410)
    );
    drop(state);
    watch.report_lost(false);
    assert!(watch.lock().lost.is_empty());
    // Further losses wait for their time, or for the end.
    watch.note(&lost(10));
    watch.report_lost(false);
    assert_eq!(watch.lock().lost.len(), 1);
    watch.report_lost(true);
    assert!(watch.lock().lost.is_empty());
}
