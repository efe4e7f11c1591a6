use super::*;
use crate::workload::{Call, Workload};

#[test]
fn rows_say_what_the_calls_say() {
    let mut workload = Workload::new(1);
    let calls: Vec<Call> = workload.by_ref().take(500).collect();
    let mut row = Vec::new();
    let mut bytes = 0;
    for call in &calls {
        let call = workload.names().plain(call);
        write(&call, &mut row);
        assert_eq!(read(&row), Some(call));
        bytes += row.len();
    }
    let mean = bytes / calls.len();
    assert!((170..200).contains(&mean), "{mean} bytes a record");
    assert_eq!((read(&row[..row.len() - 1]), read(&[])), (None, None));
}
