//! Files of the kernel.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// No file is read beyond this; machines with a thousand processors stay below.
const MAX_BYTES: u64 = 4 << 20;

/// Where the kernel's files are: `/`, or a folder of a test.
#[derive(Debug, Clone)]
pub(super) struct Root(PathBuf);

impl Root {
    pub(super) fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// A file as text; the error names it.
    pub(super) fn read(&self, path: &str) -> io::Result<String> {
        let read = |path: &Path| {
            let mut text = String::new();
            File::open(path)?
                .take(MAX_BYTES)
                .read_to_string(&mut text)?;
            Ok(text)
        };
        let path = self.0.join(path);
        read(&path).map_err(|error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })
    }

    /// Whether there is such a file or folder.
    pub(super) fn has(&self, path: &str) -> bool {
        self.0.join(path).exists()
    }
}

/// What is not as it should be in one of the kernel's texts.
pub(super) fn malformed(file: &str, what: &str) -> io::Error {
    let shown: String = what.chars().take(80).collect();
    io::Error::new(ErrorKind::InvalidData, format!("{file}: {shown}"))
}

/// The first numbers of a line; `None` if there are fewer, or one is not a number of 64 bits.
pub(super) fn numbers<const N: usize>(text: &str) -> Option<[u64; N]> {
    let mut words = text.split_ascii_whitespace();
    let mut all = [0; N];
    for number in &mut all {
        *number = words.next()?.parse().ok()?;
    }
    Some(all)
}

#[cfg(test)]
mod tests;
