use super::*;

#[test]
fn a_type_goes_before_an_alias_of_its_name() {
    let schema = |name: &str| Arc::new(Schema::new(name, Vec::new()).unwrap());
    let mut catalog = Catalog::new();
    catalog.register(schema("present"));
    catalog.register_alias("former", "present");
    assert_eq!(catalog.get("former"), Some(&schema("present")));
    catalog.register(schema("former"));
    assert_eq!(catalog.get("former"), Some(&schema("former")));
}
