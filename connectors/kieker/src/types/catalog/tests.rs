use super::*;

#[test]
fn former_names_lead_to_types_that_exist() {
    let catalog = catalog();
    let present = |name| format!("kieker.common.record.{name}");
    let former_names = FORMER_NAMES.map(|(former, name)| (present(former), name));
    let execution = (
        TPMON_EXECUTION.to_owned(),
        "controlflow.OperationExecutionRecord",
    );
    for (former, name) in former_names.into_iter().chain([execution]) {
        assert_eq!(catalog.get(&former).unwrap().name(), present(name));
    }
    assert_eq!(catalog.schemas().len(), KIEKER_TYPES.len());
}
