use super::*;
use crate::workload::{Call, Workload};

#[test]
fn a_row_has_its_run_and_time_and_few_bytes_beside_the_strings() {
    let mut workload = Workload::new(1);
    let calls: Vec<Call> = workload.by_ref().take(500).collect();
    let mut row = Vec::new();
    let mut bytes = 0;
    for call in &calls {
        let call = workload.names().plain(call);
        begin(7, call.tout, &mut row);
        append_call(&call, &mut row);
        assert_eq!(read(&row), Some((7, call.tout)));
        bytes += row.len();
    }
    let mean = bytes / calls.len();
    assert!((174..204).contains(&mean), "{mean} bytes a record");
    assert_eq!((read(&row[..12]), read(&[])), (None, None));
    row[0] = 9;
    assert_eq!(read(&row), None);
}
