//! Record types beside Kieker's own, read from files for readers and writers of Kieker's formats.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baler_common::record::Catalog;
use baler_common::record::irl::{self, IrlSource};
use baler_common::transport::Failure;

/// The most `.irl` files of a folder.
const MAX_FILES: usize = 1_000;

/// Returns Kieker's types if `schema` is not set, and otherwise the types of [`read_schema`].
///
/// # Errors
///
/// A file cannot be read, or its content is wrong and must be changed.
pub fn catalog(schema: Option<&Path>) -> Result<Arc<Catalog>, Failure> {
    schema.map_or_else(|| Ok(Catalog::shared_kieker()), read_schema)
}

/// Reads Kieker's types, and the types of an `.irl` file or of all `.irl` files of a folder and its
/// sub-folders. A decoder with this catalog decodes these types in chunks of Kieker's container.
///
/// # Errors
///
/// A file cannot be read, or its content is wrong and must be changed.
pub fn read_schema(schema: &Path) -> Result<Arc<Catalog>, Failure> {
    read(schema).map(Arc::new).map_err(|message| {
        let message = format!("{}: {message}", schema.display());
        Failure::last("read the schema of", message)
    })
}

fn read(schema: &Path) -> Result<Catalog, String> {
    let mut paths = Vec::new();
    if schema.is_dir() {
        find(schema, &mut paths)?;
        paths.sort();
    } else {
        paths.push(schema.to_owned());
    }
    let mut texts = Vec::new();
    let mut left = u64::try_from(irl::MAX_BYTES).unwrap_or(u64::MAX) + 1;
    for path in paths {
        let name = path.display().to_string();
        let failed = |error| format!("{name}: {error}");
        let mut text = String::new();
        let file = fs::File::open(&path).map_err(failed)?;
        let bytes = file.take(left).read_to_string(&mut text).map_err(failed)?;
        left = left.saturating_sub(u64::try_from(bytes).unwrap_or(u64::MAX));
        texts.push((name, text));
    }
    let sources = texts.iter().map(|(name, text)| IrlSource { name, text });
    let sources: Vec<_> = sources.collect();
    let mut catalog = Catalog::kieker();
    irl::read(&mut catalog, &sources).map_err(|error| error.to_string())?;
    Ok(catalog)
}

/// Finds the `.irl` files of a folder and its sub-folders. Does not follow links.
fn find(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        let path = entry.path();
        if kind.is_dir() {
            find(&path, paths)?;
        } else if kind.is_file() && path.extension().is_some_and(|it| it == "irl") {
            paths.push(path);
        }
        if paths.len() > MAX_FILES {
            return Err(format!("the folder has more than {MAX_FILES} .irl files"));
        }
    }
    Ok(())
}
