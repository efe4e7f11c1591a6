use baler_rig::workload::{Call, Workload};
use clap::Parser as _;

use super::super::Args;
use super::*;

/// Each case once, on records of its own and on records of which one differs.
#[test]
fn every_format_yields_what_was_encoded_and_notices_another_record() {
    let mut workload = Workload::new(1);
    let calls: Vec<Call> = workload.by_ref().take(300).collect();
    let args = Args::parse_from(["codec", "--chunk-records=1,7,300"]);
    for case in Case::all(&args) {
        let pieces =
            |calls: &[Call]| Piece::all(workload.names(), calls, case.chunk_records).unwrap();
        let mut work = Work::new(&case).unwrap();
        let own = pieces(&calls);
        let bytes = work.check(&own);
        assert!(bytes.is_ok_and(|bytes| bytes > 0), "{case:?}");
        let mut others = calls.clone();
        others[0].ess += 1;
        let sent = work.encode(&own[0]).unwrap().to_vec();
        let noticed = !work.has(&sent, &pieces(&others)[0]).unwrap();
        assert!(noticed, "{case:?}");
    }
}
