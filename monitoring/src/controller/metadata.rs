//! Kieker's metadata record: the first one of a stream, saying where it comes from.

use std::sync::{Arc, OnceLock};

use baler_common::record::{Field, FieldType, RowWriter, Schema};

/// What the record says; times are always nanoseconds since the Unix epoch.
#[derive(Debug, Clone)]
pub(crate) struct Metadata {
    pub(crate) application: Box<str>,
    pub(crate) hostname: Box<str>,
    pub(crate) experiment_id: i32,
}

impl Metadata {
    /// `kieker.common.record.misc.KiekerMetadataRecord`; `None` only if its schema were wrong.
    pub(crate) fn schema() -> Option<&'static Arc<Schema>> {
        static SCHEMA: OnceLock<Option<Arc<Schema>>> = OnceLock::new();
        let make = || {
            let fields = vec![
                Field::new("version", FieldType::String),
                Field::new("controllerName", FieldType::String),
                Field::new("hostname", FieldType::String),
                Field::new("experimentId", FieldType::I32),
                Field::new("debugMode", FieldType::Bool),
                Field::new("timeOffset", FieldType::I64),
                Field::new("timeUnit", FieldType::String),
                Field::new("numberOfRecords", FieldType::I64),
            ];
            let schema = Schema::new("kieker.common.record.misc.KiekerMetadataRecord", fields);
            schema.ok().map(Arc::new)
        };
        SCHEMA.get_or_init(make).as_ref()
    }

    /// Writes the fields in the schema's order.
    pub(crate) fn write(&self, row: &mut RowWriter<'_>) {
        row.str(concat!("baler ", env!("CARGO_PKG_VERSION")));
        row.str(&self.application);
        row.str(&self.hostname);
        row.i32(self.experiment_id);
        row.bool(false);
        row.i64(0);
        row.str("NANOSECONDS");
        // Kieker has sent 0 since 1.13.
        row.i64(0);
    }
}
