//! Record types beside Kieker's own, read from files for readers and writers of Kieker's formats.

use std::path::Path;
use std::sync::Arc;

use baler_common::record::Catalog;
use baler_common::record::irl;
use baler_common::transport::Failure;
use baler_irl::{TextFile, read_files};

use crate::types;

/// Returns Kieker's types if `schema` is not set, and otherwise the types of [`read_schema`].
///
/// # Errors
///
/// A file cannot be read, or its content is wrong and must be changed.
pub(crate) fn catalog(schema: Option<&Path>) -> Result<Arc<Catalog>, Failure> {
    schema.map_or_else(|| Ok(types::shared_catalog()), read_schema)
}

/// Reads Kieker's types, and the types of an `.irl` file or of all `.irl` files of a folder and its
/// sub-folders. A decoder with this catalog decodes these types in chunks of Kieker's container.
///
/// # Errors
///
/// A file cannot be read, or its content is wrong and must be changed.
pub fn read_schema(schema: &Path) -> Result<Arc<Catalog>, Failure> {
    let failed = |message| Failure::last("read the schema of", message);
    let files = read_files(&[schema]).map_err(|error| failed(error.to_string()))?;
    let sources: Vec<_> = files.iter().map(TextFile::source).collect();
    let mut catalog = types::catalog();
    irl::read(&mut catalog, &sources).map_err(|error| failed(error.to_string()))?;
    Ok(Arc::new(catalog))
}
