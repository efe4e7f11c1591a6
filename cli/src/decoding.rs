//! The decoders of chunks, with their dictionaries, record types and memory limit.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use baler_common::container::{ChunkDecoder, Dictionaries, Dictionary, Limits};

use crate::args::DecodingArgs;
use crate::exit::Failure;
use baler_analysis::filters::Fields;

/// Reads a dictionary from a file.
///
/// # Errors
///
/// The file cannot be read, or is not a dictionary.
pub(crate) fn read(path: &Path) -> Result<Dictionary, Failure> {
    let bytes = fs::read(path).map_err(unusable(path))?;
    Dictionary::new(bytes).map_err(unusable(path))
}

/// Returns the number of parts of the memory for decoded chunks. If fields are copied, a chunk gets
/// half.
pub(crate) fn memory_parts(fields: Option<&Fields>, workers: NonZeroUsize) -> NonZeroUsize {
    match fields {
        Some(_) => workers.saturating_add(workers.get()),
        None => workers,
    }
}

fn unusable<E: std::fmt::Display>(path: &Path) -> impl Fn(E) -> Failure {
    move |error| Failure::configuration(format!("cannot use {}: {error}", path.display()))
}

/// Returns the decoder of each worker. All workers share the memory limit in equal parts. The
/// decoder has the dictionaries in these files, and in the files `*.zdict` of these folders, and
/// the record types of the schema.
///
/// # Errors
///
/// A file cannot be read or is wrong, or two dictionaries have the same id.
pub(crate) fn decoder(args: &DecodingArgs, workers: NonZeroUsize) -> Result<ChunkDecoder, Failure> {
    let mut dictionaries = Dictionaries::default();
    for path in &args.dictionaries {
        for file in files(path)? {
            let inserted = dictionaries.insert(read(&file)?);
            inserted.map_err(unusable(&file))?;
        }
    }
    let mut limits = Limits::default();
    let all_workers = args
        .decoded_limit
        .map_or(limits.decoded_bytes, NonZeroUsize::get);
    limits.decoded_bytes = all_workers / workers;
    // An expanded body takes memory, too.
    limits.body_bytes = limits.body_bytes.min(limits.decoded_bytes);
    let decoder = baler::decoder(limits).with_dictionaries(dictionaries);
    #[cfg(feature = "kieker")]
    if let Some(schema) = &args.schemas.path {
        let catalog = baler_connector_kieker::read_schema(schema)
            .map_err(|error| Failure::configuration(error.message))?;
        return Ok(decoder.with_catalog(catalog));
    }
    Ok(decoder)
}

/// Returns the file, or the files of the folder.
fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).and_then(|entries| {
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        paths.collect::<Result<Vec<_>, _>>()
    });
    let mut files = entries.map_err(|error| {
        Failure::configuration(format!("cannot read {}: {error}", path.display()))
    })?;
    files.retain(|file| file.extension().is_some_and(|end| end == "zdict"));
    files.sort();
    if files.is_empty() {
        let message = format!("there is no file *.zdict in {}", path.display());
        return Err(Failure::configuration(message));
    }
    Ok(files)
}
