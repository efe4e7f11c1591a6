use std::sync::Arc;

use baler_common::record::FieldType;

use super::*;

fn schema(name: &str, fields: &[&str]) -> Arc<Schema> {
    let fields = fields.iter();
    let fields: Vec<_> = fields.map(|it| Field::new(*it, FieldType::I32)).collect();
    Arc::new(Schema::new(name, fields).unwrap())
}

fn fields(list: &str) -> Fields {
    let names: Vec<_> = list.split(',').map(str::to_owned).collect();
    Fields::new("--fields", &names).unwrap()
}

fn see(chosen: &Fields, schema: &Schema) {
    let fields = schema.fields().iter().map(Field::name);
    lock(&chosen.search).see(schema.name(), fields);
}

#[test]
fn a_name_is_that_of_a_field_or_of_a_type_and_its_field() {
    let schema = schema("shop::Order", &["id", "http.id", "total"]);
    for (list, expected) in [
        ("id", vec!["id"]),
        ("total, id", vec!["id", "total"]),
        ("Order.id", vec!["id"]),
        ("shop::Order.total", vec!["total"]),
        ("*Order.total", vec!["total"]),
        ("Visit.id", vec![]),
        ("http.id", vec!["http.id"]),
        ("Order.http.id", vec!["http.id"]),
        ("d", vec![]),
    ] {
        let fields = fields(list);
        let narrowed = schema.narrowed(|field| fields.keeps(&schema, field));
        let names: Vec<_> = narrowed.fields().iter().map(Field::name).collect();
        assert_eq!(names, expected, "{list}");
    }
}

#[test]
fn a_field_that_no_type_has_is_an_error_that_lists_those_there_are() {
    let chosen = fields("id,nothing,Order.id");
    assert!(chosen.check().is_ok(), "nothing is known of no types");
    see(&chosen, &schema("shop::Visit", &["id", "page"]));
    see(&chosen, &schema("shop::Order", &["id"]));
    let failure = chosen.check().unwrap_err();
    assert!(matches!(failure, AnalysisError::Stage { .. }));
    assert_eq!(
        failure.to_string(),
        "--fields: no record type has nothing; the types that came have\n  shop::Order: id\n  \
             shop::Visit: id, page"
    );
    see(&chosen, &schema("Other", &["nothing"]));
    assert!(chosen.check().is_ok());
    let empty = Fields::new("--fields", &["id".to_owned(), String::new()]).unwrap_err();
    assert!(
        empty
            .to_string()
            .starts_with("--fields `id,`: a name is empty")
    );
}
