use baler_common::record::WordLayout;

use super::*;

#[test]
fn calls_have_the_fields_of_the_records_that_are_made_of_them() {
    let executions = OperationExecutionRecord::schema();
    assert!(WordLayout::is_of(executions, Execution::WIDTHS));
    assert!(WordLayout::is_of(
        DurationRecord::schema(),
        Duration::WIDTHS
    ));
    let mut rows = CallRows::default();
    let record = Duration {
        operation_signature: no_session(),
        tin: 1,
        tout: 2,
    };
    record.write_words(&mut rows).unwrap();
    assert_eq!(rows.words.first(), Some(&2), "the first word is `tout`");
}
