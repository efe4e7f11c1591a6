use super::*;

#[test]
fn chunks_that_the_medium_refused_after_they_were_spooled_are_no_success() {
    let stats = RelayStats::default();
    let mut spool = SpoolStatus::default();
    assert_eq!(code(&stats, Some(&spool)), Code::Done);
    spool.refused_records = 1;
    assert_eq!(code(&stats, Some(&spool)), Code::Data);
}
