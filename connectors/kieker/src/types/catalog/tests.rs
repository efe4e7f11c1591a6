use super::*;

#[test]
fn former_names_lead_to_types_that_exist() {
    let catalog = catalog();
    for (former, name) in FORMER_NAMES {
        let schema = catalog.get(former).unwrap();
        assert_eq!(schema.name(), format!("kieker.common.record.{name}"));
    }
    assert_eq!(catalog.schemas().len(), KIEKER_TYPES.len());
}
