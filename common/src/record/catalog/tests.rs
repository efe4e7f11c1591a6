use super::*;

#[test]
fn former_names_lead_to_types_that_exist() {
    let catalog = Catalog::kieker();
    for (alias, name) in KIEKER_ALIASES {
        let schema = catalog.get(alias).unwrap();
        assert_eq!(schema.name(), format!("kieker.common.record.{name}"));
    }
    assert_eq!(catalog.schemas().len(), KIEKER_TYPES.len());
}

#[test]
fn a_type_goes_before_an_alias_of_its_name() {
    let mut catalog = Catalog::kieker();
    let (alias, _) = KIEKER_ALIASES[0];
    let own = Arc::new(Schema::new(alias, Vec::new()).unwrap());
    catalog.register(Arc::clone(&own));
    assert_eq!(catalog.get(alias), Some(&own));
}
