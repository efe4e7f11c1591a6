//! The files of a log.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::LogError;

/// What the map may be called; the second name is that of Kieker's predecessor.
const MAPS: [&str; 2] = ["kieker.map", "tpmon.map"];

/// What the names of logs begin with.
const PREFIXES: [&str; 2] = ["kieker", "tpmon"];

/// The extensions of compressed logs, binary or text (`monitoring/writer/compression` in Kieker).
const COMPRESSED: [&str; 6] = ["bz2", "df", "gz", "lzma", "xz", "zip"];

/// The files of a log, by what can be made of them.
#[derive(Debug)]
pub(super) struct LogFolder {
    pub(super) map: PathBuf,
    /// Text logs, in order of their names.
    pub(super) logs: Vec<PathBuf>,
    /// Compressed and binary logs, in order of their names.
    pub(super) unread: Vec<PathBuf>,
}

impl LogFolder {
    pub(super) fn open(folder: &Path) -> Result<Self, LogError> {
        let mut logs = Vec::new();
        let mut compressed = Vec::new();
        let mut binary = Vec::new();
        for path in entries(folder)? {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            let extension = path.extension().and_then(|extension| extension.to_str());
            if !PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || path.is_dir() {
                continue;
            }
            match extension {
                Some("dat") => logs.push(path),
                Some("bin") => binary.push(path),
                Some(other) if COMPRESSED.contains(&other) => compressed.push(path),
                _ => {}
            }
        }
        if logs.is_empty()
            && let Some(example) = compressed.first().or_else(|| binary.first())
        {
            return Err(LogError::NoTextLog {
                folder: folder.to_owned(),
                compressed: compressed.len(),
                binary: binary.len(),
                example: example.clone(),
            });
        }
        let Some(map) = map_of(folder) else {
            let near = entries(folder)?
                .into_iter()
                .find(|path| map_of(path).is_some());
            return Err(LogError::NoMap {
                folder: folder.to_owned(),
                near,
            });
        };
        if logs.is_empty() {
            return Err(LogError::NoLog {
                folder: folder.to_owned(),
            });
        }
        compressed.append(&mut binary);
        compressed.sort();
        Ok(Self {
            map,
            logs,
            unread: compressed,
        })
    }
}

fn map_of(folder: &Path) -> Option<PathBuf> {
    let maps = MAPS.iter().map(|name| folder.join(name));
    maps.into_iter().find(|path| path.is_file())
}

/// What is in the folder, in order of the names.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, LogError> {
    let entries = fs::read_dir(folder).and_then(|entries| {
        entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()
    });
    let mut entries = entries.map_err(|source| LogError::Io {
        path: folder.to_owned(),
        source,
    })?;
    entries.sort();
    Ok(entries)
}
