//! Kieker's record types are those of its generated Java classes.

use std::collections::BTreeMap;
use std::sync::Arc;

use baler_common::record::{DynamicRecord, Record, Role, Schema, Value, read};
use baler_connector_kieker::types;
use baler_connector_kieker::types::{EmptyRecord, KIEKER_TYPES, OperationExecutionRecord};
use serde_json::Value as Json;

fn expected() -> BTreeMap<String, Json> {
    serde_json::from_str(include_str!("../golden/expected-records.json")).unwrap()
}

#[test]
fn names_order_and_types_of_all_fields_are_those_of_kieker() {
    let expected = expected();
    assert_eq!(expected.len(), KIEKER_TYPES.len());
    for ((name, class), schema) in expected.iter().zip(KIEKER_TYPES) {
        let schema = schema();
        assert_eq!(schema.name(), name, "in order of the class names");
        let text = |field: &Json, key: &str| field[key].as_str().unwrap().to_owned();
        let fields: Vec<_> = class["fields"].as_array().unwrap().iter().collect();
        let wanted: Vec<_> = fields
            .iter()
            .map(|field| (text(field, "name"), text(field, "java")))
            .collect();
        let found: Vec<_> = schema
            .fields()
            .iter()
            .map(|field| {
                (
                    field.name().to_owned(),
                    java(&field.field_type().to_string()),
                )
            })
            .collect();
        assert_eq!(found, wanted, "{name}");
    }
}

fn java(field_type: &str) -> String {
    match field_type {
        "bool" => "boolean",
        "f64" => "double",
        "i32" => "int",
        "i64" => "long",
        "list<string>" => "String[]",
        "string" => "String",
        not_of_kieker => not_of_kieker,
    }
    .to_owned()
}

#[test]
fn the_catalog_has_every_type() {
    let catalog = types::catalog();
    let listed: Vec<&Arc<Schema>> = KIEKER_TYPES.iter().map(|schema| schema()).collect();
    assert_eq!(catalog.schemas(), listed);
}

#[test]
fn points_in_time_are_marked_as_such() {
    for schema in KIEKER_TYPES {
        let schema = schema();
        for field in schema.fields() {
            let is_time = ["timestamp", "tin", "tout"].contains(&field.name())
                && schema.name().starts_with("kieker.common.record.");
            assert_eq!(
                field.role() == Role::UnixNanos,
                is_time,
                "{schema:?} {field:?}"
            );
        }
    }
}

#[test]
fn missing_fields_take_the_defaults_of_the_java_constructors() {
    let partial = Schema::new(OperationExecutionRecord::schema().name(), Vec::new()).unwrap();
    let empty: [Value; 0] = [];
    let record = DynamicRecord::new(Arc::new(partial), None, empty).unwrap();
    let read: OperationExecutionRecord = read(record.as_ref().fields()).unwrap();
    assert_eq!(
        read,
        OperationExecutionRecord {
            operation_signature: "noOperation".to_owned(),
            session_id: "<no-session-id>".to_owned(),
            trace_id: -1,
            tin: -1,
            tout: -1,
            hostname: "<default-host>".to_owned(),
            eoi: -1,
            ess: -1,
        }
    );
    assert!(EmptyRecord::schema().fields().is_empty());
}
