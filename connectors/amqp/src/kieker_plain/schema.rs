//! Record types beside Kieker's own, from files.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use baler_common::record::Catalog;
use baler_common::record::irl::{self, IrlSource};
use baler_common::transport::Failure;

/// The most files and folders.
const MAX_FILES: usize = 1_000;

/// Kieker's types, and those of an `.irl` file or of all such files of a folder and its folders.
///
/// # Errors
///
/// A file cannot be read or is wrong. Somebody must change it.
pub(super) fn catalog(schema: Option<&Path>) -> Result<Arc<Catalog>, Failure> {
    let Some(schema) = schema else {
        return Ok(Catalog::shared_kieker());
    };
    read(schema).map(Arc::new).map_err(|message| {
        let message = format!("schema {}: {message}", schema.display());
        Failure::last("read from", message)
    })
}

fn read(schema: &Path) -> Result<Catalog, String> {
    let mut left = u64::try_from(irl::MAX_BYTES).unwrap_or(u64::MAX) + 1;
    let (mut waiting, mut texts) = (vec![schema.to_owned()], Vec::new());
    while let Some(path) = waiting.pop() {
        let failed = |error| format!("{}: {error}", path.display());
        if path.is_dir() {
            for entry in fs::read_dir(&path).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let kind = entry.file_type().map_err(failed)?;
                let path = entry.path();
                let is_irl = kind.is_file() && path.extension().is_some_and(|it| it == "irl");
                // Links are not followed.
                waiting.extend((kind.is_dir() || is_irl).then_some(path));
            }
        } else {
            let (file, mut text) = (File::open(&path).map_err(failed)?, String::new());
            let bytes = file.take(left).read_to_string(&mut text).map_err(failed)?;
            left = left.saturating_sub(u64::try_from(bytes).unwrap_or(u64::MAX));
            texts.push((path.display().to_string(), text));
        }
        if waiting.len() + texts.len() > MAX_FILES {
            return Err(format!("there are more than {MAX_FILES} files"));
        }
    }
    texts.sort();
    let sources = texts.iter().map(|(name, text)| IrlSource { name, text });
    let sources: Vec<_> = sources.collect();
    let mut catalog = Catalog::kieker();
    irl::read(&mut catalog, &sources).map_err(|error| error.to_string())?;
    Ok(catalog)
}
